"""A task ends, and all that its coroutine had kept is freed: no line of the program runs meanwhile."""

from __future__ import annotations

import asyncio
import gc
import time

from zoo import stage
from zoo.stage import run

EXPECT = {"cause": ["native-cpu"], "about": True, "advice": ["thread", "pieces"]}


def orders(count):
    return {number: [number] for number in range(count)}


def enough_for(seconds):
    count = 500_000
    kept = orders(count)
    before = time.thread_time()
    del kept
    return int(count * seconds / (time.thread_time() - before))


async def summary(count):
    kept = orders(count)
    await asyncio.sleep(0.2)
    stage.begin()
    return len(kept)


async def handler():
    task = asyncio.create_task(summary(COUNT))
    await task
    stage.end(time.monotonic_ns())


if __name__ == "__main__":
    gc.disable()  # its collections are a kind of their own
    COUNT = enough_for(0.35)
    run(handler)
