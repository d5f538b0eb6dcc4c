"""Idle, awaiting, many short steps, a pool of threads that block: the loop is never held up."""

from __future__ import annotations

import time
from subprocess import Popen

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


def handler(child):
    async def handle():
        async with trio.open_nursery() as nursery:
            for each in (wait, block_a_thread, step):
                nursery.start_soon(each)
            nursery.start_soon(trio.to_thread.run_sync, child.wait)

    return handle


if __name__ == "__main__":
    # Begun before: a program that starts a child waits until it runs.
    run(handler(Popen(["sleep", "0.6"])))
