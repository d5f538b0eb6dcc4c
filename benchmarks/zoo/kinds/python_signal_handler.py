"""A handler of the signal module blocks; it runs wherever the main thread happens to be."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"]}


def reload_settings():
    time.sleep(0.3)  # <- culprit


def on_signal(number, frame):
    with measured():
        reload_settings()


async def handler():
    signal.signal(signal.SIGUSR1, on_signal)
    threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGUSR1]).start()
    await asyncio.sleep(0.6)


if __name__ == "__main__":
    run(handler)
