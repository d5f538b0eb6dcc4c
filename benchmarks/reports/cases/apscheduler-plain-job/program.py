"""A service's AsyncIOScheduler runs plain functions that wait and compute for seconds, in threads of the executor."""

from __future__ import annotations

import asyncio
import pathlib
import sqlite3
import subprocess
import tempfile
import time

from apscheduler.schedulers.asyncio import AsyncIOScheduler

COUNT = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000000) select sum(i * i % 7) from n"


def nightly_totals(database: str) -> None:
    with sqlite3.connect(database) as connection:
        total = connection.execute(COUNT).fetchone()[0]
        connection.execute("create table if not exists totals (total integer)")
        connection.execute("insert into totals values (?)", (total,))
    connection.close()
    print(f"totals: {total}")


def mirror() -> None:
    subprocess.run(["sleep", "2"], check=True)
    print("mirrored")


def poll_meter() -> None:
    time.sleep(1.5)
    print("meter read")


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(folder: pathlib.Path) -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    scheduler = AsyncIOScheduler(timezone="UTC")
    scheduler.start()
    await asyncio.sleep(1)
    scheduler.add_job(nightly_totals, args=[str(folder / "totals.db")])
    scheduler.add_job(mirror)
    scheduler.add_job(poll_meter)
    await asyncio.sleep(3.5)
    scheduler.shutdown(wait=False)
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(main(pathlib.Path(place)))
