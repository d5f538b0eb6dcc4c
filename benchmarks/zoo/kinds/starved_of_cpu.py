"""Neighbours pinned to the same core leave a short callback little of it."""

from __future__ import annotations

import contextlib
import os
import time

from zoo.stage import child, measured, run

EXPECT = {"cause": ["host"]}
NEIGHBOURS = 7


def add_up():
    until = time.thread_time() + 0.05
    while time.thread_time() < until:
        pass


async def handler():
    everywhere = os.sched_getaffinity(0)
    core = max(everywhere)
    async with contextlib.AsyncExitStack() as neighbours:
        for _ in range(NEIGHBOURS):
            neighbour = await neighbours.enter_async_context(child("sh", "-c", "while :; do :; done"))
            os.sched_setaffinity(neighbour.pid, {core})
        with measured():
            os.sched_setaffinity(0, {core})
            add_up()
            os.sched_setaffinity(0, everywhere)


if __name__ == "__main__":
    run(handler)
