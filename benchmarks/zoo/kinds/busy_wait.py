"""A handler waits for a moment by asking for the time again and again."""

from __future__ import annotations

import time

from zoo.stage import measured, run

EXPECT = {"cause": ["cpu"], "loops": "all"}


def hold(until):
    while time.time() < until:  # <- culprit
        pass  # <- culprit


async def handler():
    with measured():
        hold(time.time() + 0.3)


if __name__ == "__main__":
    run(handler)
