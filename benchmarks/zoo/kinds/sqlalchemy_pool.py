"""A handler waits for a connection of SQLAlchemy's pool, whose only one is in use."""

from __future__ import annotations

import sqlalchemy
import sqlalchemy.exc
import sqlalchemy.pool
from zoo.stage import measured, run

EXPECT = {"cause": ["lock"], "needs": ["SQLAlchemy"], "advice": ["create_async_engine", "to_thread"]}


def engine():
    return sqlalchemy.create_engine(
        "sqlite://", poolclass=sqlalchemy.pool.QueuePool, pool_size=1, max_overflow=0, pool_timeout=0.3
    )


def connect(database):
    try:
        return database.connect()  # <- culprit
    except sqlalchemy.exc.TimeoutError:
        return None


async def handler():
    with measured():
        connect(DATABASE)


if __name__ == "__main__":
    DATABASE = engine()
    with DATABASE.connect():
        run(handler)
