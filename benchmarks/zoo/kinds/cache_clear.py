"""A handler empties a large cache: freeing it takes its time."""

from __future__ import annotations

import gc
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["native-cpu"], "advice": ["pieces", "thread"], "loops": "all"}


def cache_of(count):
    return {number: [number] for number in range(count)}


def forget(cache):
    cache.clear()  # <- culprit


async def handler():
    with measured():
        forget(CACHE)


if __name__ == "__main__":
    gc.disable()  # its collections are a kind of their own
    SPARE = {}

    def enough(count):
        SPARE[0] = cache_of(count)
        before = time.thread_time()
        forget(SPARE[0])
        return time.thread_time() - before

    COUNT = 500_000
    CACHE = cache_of(int(COUNT * 0.35 / enough(COUNT)))
    run(handler)
