"""A handler runs a second loop inside the running one, as notebooks do, and blocks in it."""

from __future__ import annotations

import asyncio
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"], "loops": ["asyncio"]}


async def fetch():
    await asyncio.sleep(0)
    time.sleep(0.3)  # <- culprit


def run_nested(coroutine):
    outer = asyncio.get_running_loop()
    inner = asyncio.new_event_loop()
    asyncio._set_running_loop(None)
    try:
        inner.run_until_complete(coroutine)
    finally:
        inner.close()
        asyncio._set_running_loop(outer)


async def handler():
    current = asyncio.current_task()
    with measured():
        asyncio.tasks._leave_task(asyncio.get_running_loop(), current)
        run_nested(fetch())
        asyncio.tasks._enter_task(asyncio.get_running_loop(), current)


if __name__ == "__main__":
    run(handler)
