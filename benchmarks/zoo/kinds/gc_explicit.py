"""A handler collects garbage by itself, on a large heap."""

from __future__ import annotations

import gc
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["gc"], "loops": "all"}
gc.disable()
HEAP = []


def tidy_up():
    gc.collect()  # <- culprit


def fill_until(seconds):
    took = 0.0
    while took < seconds:
        HEAP.extend([number] for number in range(500_000))
        before = time.thread_time()
        tidy_up()
        took = time.thread_time() - before


fill_until(0.25)


async def handler():
    with measured():
        tidy_up()


if __name__ == "__main__":
    run(handler)
