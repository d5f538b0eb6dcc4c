"""A task that is cancelled blocks while it cleans up."""

from __future__ import annotations

import time

import trio
from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"], "loops": ["trio"]}


def flush():
    time.sleep(0.3)  # <- culprit


async def feed():
    try:
        await trio.sleep_forever()
    finally:
        with measured():
            flush()


async def handler():
    with trio.move_on_after(0.05):
        await feed()


if __name__ == "__main__":
    run(handler)
