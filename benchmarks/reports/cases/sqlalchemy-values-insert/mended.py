"""A worker writes each batch of events with async SQLAlchemy, the rows as parameters."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import tempfile
import time
import uuid

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

metadata = sa.MetaData()
events = sa.Table(
    "events",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("occurred", sa.DateTime, nullable=False),
    sa.Column("event", sa.String, nullable=False),
    sa.Column("resource_id", sa.String, nullable=False),
    sa.Column("resource_name", sa.String, nullable=False),
    sa.Column("payload", sa.JSON, nullable=False),
)


def make_event(number: int) -> dict[str, object]:
    flow = f"flow-run.{number % 17}"
    return {
        "id": uuid.uuid4(),
        "occurred": datetime.datetime(2026, 8, 27) + datetime.timedelta(seconds=number),
        "event": "flow-run.Running",
        "resource_id": flow,
        "resource_name": "nightly",
        "payload": {"attempt": number % 3},
    }


async def write_batch(engine: AsyncEngine, batch: list[dict[str, object]]) -> None:
    async with engine.begin() as connection:
        statement = insert(events).on_conflict_do_nothing(index_elements=["id"])
        await connection.execute(statement, batch)


async def persister(engine: AsyncEngine, queue: asyncio.Queue[dict[str, object] | None]) -> None:
    batch = []
    while (event := await queue.get()) is not None:
        batch.append(event)
        if len(batch) == 6000:
            await write_batch(engine, batch)
            batch.clear()


async def producer(queue: asyncio.Queue[dict[str, object] | None]) -> None:
    for number in range(18000):
        await queue.put(make_event(number))
        if number % 100 == 0:
            await asyncio.sleep(0.01)
    await queue.put(None)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(folder: str) -> None:
    engine = create_async_engine("sqlite+aiosqlite:///" + os.path.join(folder, "events.db"))
    async with engine.begin() as connection:
        await connection.run_sync(metadata.create_all)
    queue: asyncio.Queue[dict[str, object] | None] = asyncio.Queue(maxsize=500)
    writing = asyncio.create_task(persister(engine, queue))
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(0.2)
    await producer(queue)
    await writing
    await asyncio.sleep(0.1)
    beats.cancel()
    async with engine.connect() as connection:
        count = await connection.scalar(sa.select(sa.func.count()).select_from(events))
    await engine.dispose()
    print(json.dumps({"events": count}))
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))
