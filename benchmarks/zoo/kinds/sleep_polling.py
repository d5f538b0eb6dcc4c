"""A handler polls for a flag with many short sleeps."""

from __future__ import annotations

import threading
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"]}


def wait_until_ready(ready):
    while not ready.is_set():  # <- culprit
        time.sleep(0.01)  # <- culprit


async def handler():
    ready = threading.Event()
    with measured():
        threading.Timer(0.3, ready.set).start()
        wait_until_ready(ready)


if __name__ == "__main__":
    run(handler)
