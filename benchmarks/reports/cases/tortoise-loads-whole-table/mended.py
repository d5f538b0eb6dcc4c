"""A collecting game's bot counts its rarest balls: it loads the table with Tortoise ORM, in small batches."""

from __future__ import annotations

import asyncio
import pathlib
import sqlite3
import tempfile
import time
from collections import Counter

from tortoise import Tortoise, fields
from tortoise.models import Model

BATCH = 100


class Ball(Model):
    id = fields.IntField(primary_key=True)
    country = fields.CharField(max_length=40)
    attack = fields.IntField()
    health = fields.IntField()
    shiny = fields.BooleanField()
    caught = fields.DatetimeField()


def fill(path: pathlib.Path, count: int) -> None:
    rows = [(n, f"country {n % 97}", n % 31, n % 29, n % 50 == 0, f"2023-04-{n % 28 + 1:02} 10:00:00+00:00") for n in range(1, count)]
    with sqlite3.connect(path) as connection:
        connection.executemany("insert into ball values (?, ?, ?, ?, ?, ?)", rows)
    connection.close()


async def count_shiny() -> list[tuple[str, int]]:
    shiny: Counter[str] = Counter()
    last = 0
    while balls := await Ball.filter(id__gt=last).order_by("id").limit(BATCH):
        for ball in balls:
            if ball.shiny:
                shiny[ball.country] += 1
        last = balls[-1].id
    return shiny.most_common(2)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(path: pathlib.Path) -> None:
    await Tortoise.init(
        {"connections": {"default": f"sqlite://{path}"}, "apps": {"models": {"models": ["__main__"]}}, "use_tz": True}
    )
    await Tortoise.generate_schemas()
    await asyncio.to_thread(fill, path, 12_000)
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    for _ in range(2):
        await asyncio.sleep(0.7)
        print(await count_shiny())
    beats.cancel()
    await Tortoise.close_connections()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(pathlib.Path(folder, "game.sqlite3")))
