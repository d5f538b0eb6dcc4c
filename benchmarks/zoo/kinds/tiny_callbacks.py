"""A thousand short callbacks in one turn of the loop: none is too long."""

from __future__ import annotations

import asyncio
import time

from zoo.stage import begin, end, run

EXPECT = {"cause": ["burst"]}
COUNT = 600


def push_update(until):
    while time.perf_counter() < until:  # <- culprit
        pass  # <- culprit


def tiny():
    push_update(time.perf_counter() + 0.0005)


async def handler():
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_soon(begin)
    for _ in range(COUNT):
        loop.call_soon(tiny)
    loop.call_soon(lambda: done.set_result(end(time.monotonic_ns())))
    await done


if __name__ == "__main__":
    run(handler)
