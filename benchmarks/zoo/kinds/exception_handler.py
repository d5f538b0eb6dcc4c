"""The loop's exception handler blocks."""

from __future__ import annotations

import asyncio
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"]}


async def handler():
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def send_alert(loop, context):
        with measured():
            time.sleep(0.3)  # <- culprit
            done.set_result(None)

    loop.set_exception_handler(send_alert)
    loop.call_soon(int, "no number")
    await done


if __name__ == "__main__":
    run(handler)
