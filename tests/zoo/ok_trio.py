"""Idle, awaiting, many short steps, a pool of threads that block: the loop is never held up."""

from __future__ import annotations

import time

import trio
from zoo.stage import run

EXPECT = {"control": True}


async def wait():
    await trio.sleep(0.4)


async def block_a_thread():
    await trio.to_thread.run_sync(time.sleep, 0.4)


async def step():
    for _ in range(2000):
        await trio.lowlevel.checkpoint()


async def child():
    await trio.run_process(["sleep", "0.3"])


async def handler():
    async with trio.open_nursery() as nursery:
        for each in (wait, block_a_thread, step, child):
            nursery.start_soon(each)


if __name__ == "__main__":
    run(handler)
