"""A handler walks a tree by recursion: one function, many frames."""

from __future__ import annotations

from zoo.stage import measured, run

EXPECT = {"cause": ["cpu"]}


def ways(steps):
    if steps < 2:  # <- culprit
        return 1  # <- culprit
    return ways(steps - 1) + ways(steps - 2)  # <- culprit


def height_for(seconds):
    import time

    steps, took = 16, 0.0
    while took < 0.02:
        steps += 1
        before = time.thread_time()
        ways(steps)
        took = time.thread_time() - before
    while took < seconds:
        steps, took = steps + 1, took * 1.618
    return steps


STEPS = height_for(0.25)


async def handler():
    with measured():
        ways(STEPS)


if __name__ == "__main__":
    run(handler)
