"""Hundreds of tasks with a short step each, all in one turn: none is too long."""

from __future__ import annotations

import time

import trio
from zoo.stage import begin, end, run

EXPECT = {"cause": ["burst"], "loops": ["trio"], "about": True}
COUNT = 600


def push_update(until):
    while time.perf_counter() < until:  # <- culprit
        pass  # <- culprit


async def tiny(ends):
    push_update(time.perf_counter() + 0.0005)
    ends.append(time.monotonic_ns())


async def handler():
    ends = []
    async with trio.open_nursery() as nursery:
        for _ in range(COUNT):
            nursery.start_soon(tiny, ends)
        begin()
    end(max(ends))


if __name__ == "__main__":
    run(handler)
