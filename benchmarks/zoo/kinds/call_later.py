"""A timer's callback blocks."""

from __future__ import annotations

import asyncio
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"]}


def refresh_token(done):
    time.sleep(0.3)  # <- culprit
    done.set_result(None)


def on_timer(done):
    with measured():
        refresh_token(done)


async def handler():
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_later(0.05, on_timer, done)
    await done


if __name__ == "__main__":
    run(handler)
