"""Two loops at work; the main thread's blocks, the other goes on."""

from __future__ import annotations

import asyncio
import threading
import time

from zoo.stage import loop_factory, measured, run

EXPECT = {"cause": ["sleep"]}
stopped = threading.Event()


async def tick():
    while not stopped.is_set():
        await asyncio.sleep(0.01)


def ticking_thread():
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(tick())


def wait_for_rate_limit():
    time.sleep(0.3)  # <- culprit


async def handler():
    ticking = threading.Thread(target=ticking_thread)
    ticking.start()
    await asyncio.sleep(0.1)
    with measured():
        wait_for_rate_limit()
    await asyncio.sleep(0)
    stopped.set()
    await asyncio.to_thread(ticking.join)


if __name__ == "__main__":
    run(handler)
