"""A handler of loop.add_signal_handler blocks."""

from __future__ import annotations

import asyncio
import os
import signal
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"]}


def reload_settings():
    time.sleep(0.3)  # <- culprit


async def handler():
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def on_signal():
        with measured():
            reload_settings()
            done.set_result(None)

    loop.add_signal_handler(signal.SIGUSR2, on_signal)
    os.kill(os.getpid(), signal.SIGUSR2)
    await done


if __name__ == "__main__":
    run(handler)
