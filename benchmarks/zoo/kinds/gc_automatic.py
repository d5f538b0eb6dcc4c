"""A collection begins by itself, in whatever code happens to make objects."""

from __future__ import annotations

import gc
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["gc"]}
gc.disable()
HEAP = []


def fill(count):
    HEAP.clear()
    HEAP.extend([number] for number in range(count))


def enough_for(seconds):
    count, took = 200_000, 0.0
    while took < 0.03:
        count *= 2
        fill(count)
        before = time.thread_time()
        gc.collect()
        took = time.thread_time() - before
    return int(count * seconds / took)


fill(enough_for(0.4))


def load_orders():
    return [[] for _ in range(gc.get_threshold()[0] * 2)]  # <- culprit


async def handler():
    # All of the heap is young, since nothing was collected so far: the first collection goes through it.
    with measured():
        gc.enable()
        load_orders()
        gc.disable()


if __name__ == "__main__":
    run(handler)
