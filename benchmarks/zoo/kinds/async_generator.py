"""An asynchronous generator blocks between two items."""

from __future__ import annotations

import time

from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"]}


async def pages():
    for number in range(3):
        time.sleep(0.1)  # <- culprit
        yield number


async def handler():
    with measured():
        async for _ in pages():
            pass


if __name__ == "__main__":
    run(handler)
