"""Two parts of a program write to one SQLite file with aiosqlite: one of them keeps the lock for long."""

from __future__ import annotations

import asyncio
import pathlib
import tempfile
import time

import aiosqlite


async def import_prices(path: pathlib.Path) -> None:
    """Holds the lock while it waits for what a slow shop sends."""
    async with aiosqlite.connect(path, isolation_level=None) as database:
        for shop in range(3):
            await database.execute("begin immediate")
            for article in range(10):
                await asyncio.sleep(0.1)
                await database.execute("insert into price values (?, ?, ?)", (shop, article, article * 1.5))
            await database.execute("commit")
            await asyncio.sleep(0.3)


async def write_visits(path: pathlib.Path) -> None:
    async with aiosqlite.connect(path, isolation_level=None, timeout=10) as database:
        for visit in range(12):
            began = time.perf_counter()
            await database.execute("insert into visit values (?)", (visit,))
            print(f"visit {visit} - took {(time.perf_counter() - began) * 1000:.0f} ms")
            await asyncio.sleep(0.1)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(path: pathlib.Path) -> None:
    async with aiosqlite.connect(path) as database:
        await database.executescript("create table price (shop, article, price); create table visit (number)")
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.gather(import_prices(path), write_visits(path))
    beats.cancel()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(pathlib.Path(folder, "shop.sqlite3")))
