"""80 % of a stall in one function, 20 % in another of another cause."""

from __future__ import annotations

import time

from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"]}


def wait_for_quota():
    time.sleep(0.32)  # <- culprit


def count_words():
    until = time.thread_time() + 0.08
    while time.thread_time() < until:
        pass


async def handler():
    with measured():
        wait_for_quota()
        count_words()


if __name__ == "__main__":
    run(handler)
