"""Control: tasks queue for an asyncio.Lock; the loop goes on."""

from __future__ import annotations

import asyncio

from zoo.stage import run

EXPECT = {"control": True}


async def handler():
    lock = asyncio.Lock()

    async def book():
        async with lock:
            await asyncio.sleep(0.15)

    await asyncio.gather(*[book() for _ in range(5)])


if __name__ == "__main__":
    run(handler)
