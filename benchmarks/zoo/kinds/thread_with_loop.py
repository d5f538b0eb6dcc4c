"""A loop in a thread of its own blocks; the main thread's does not."""

from __future__ import annotations

import asyncio
import time

from zoo.stage import QUIET_S, loop_factory, measured, run

EXPECT = {"cause": ["sleep"]}


def poll_device():
    time.sleep(0.3)  # <- culprit


async def device():
    await asyncio.sleep(QUIET_S)
    with measured():
        poll_device()
    await asyncio.sleep(QUIET_S)


def device_thread():
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(device())


async def handler():
    await asyncio.to_thread(device_thread)


if __name__ == "__main__":
    run(handler)
