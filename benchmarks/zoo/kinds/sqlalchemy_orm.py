"""A handler loads many objects by SQLAlchemy's session."""

from __future__ import annotations

import gc

import sqlalchemy
from sqlalchemy import orm
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "needs": ["SQLAlchemy"], "advice": ["yield_per", "columns", "page"]}


class Base(orm.DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    number: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    state: orm.Mapped[str]


def filled(count):
    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.StaticPool)
    Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        rows = [{"number": number, "state": "new"} for number in range(count)]
        session.execute(sqlalchemy.insert(Order), rows)
        session.commit()
    return engine


def load(engine, count):
    with orm.Session(engine) as session:
        return len(session.scalars(sqlalchemy.select(Order).limit(count)).all())  # <- culprit


async def handler():
    with measured():
        load(ENGINE, COUNT)


if __name__ == "__main__":
    gc.disable()  # its collections are a kind of their own
    SMALL = filled(20_000)
    COUNT = sized(lambda count: load(SMALL, count), 0.35, start=500)
    ENGINE = filled(COUNT)
    run(handler)
