"""Control: many short steps, tasks that wait long, a child and a thread, awaited."""

from __future__ import annotations

import time

import trio
from zoo.stage import run

EXPECT = {"control": True, "loops": ["trio"]}


async def step():
    for _ in range(2000):
        await trio.lowlevel.checkpoint()


async def handler():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(step)
        nursery.start_soon(trio.run_process, ["sleep", "0.5"])
        nursery.start_soon(trio.to_thread.run_sync, time.sleep, 0.6)
        for number in range(50):
            nursery.start_soon(trio.sleep, 0.5 + number / 500)


if __name__ == "__main__":
    run(handler)
