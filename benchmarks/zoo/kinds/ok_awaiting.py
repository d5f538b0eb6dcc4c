"""Control: a hundred tasks that wait long, as tasks should."""

from __future__ import annotations

import asyncio

from zoo.stage import run

EXPECT = {"control": True}


async def handler():
    await asyncio.gather(*[asyncio.sleep(0.5 + number / 500) for number in range(100)])


if __name__ == "__main__":
    run(handler)
