"""A handler waits for a lock that a thread took in the caller of what it runs now."""

from __future__ import annotations

import threading
import time

from zoo.stage import measured, pause, run

EXPECT = {"cause": ["lock"], "thread": ["cache-refresh"], "loops": "all"}
cache = threading.Lock()
taken = threading.Event()


def download():
    taken.set()
    time.sleep(0.3)


def refresh():
    with cache:
        download()  # <- holder


def look_up():
    with cache:  # <- culprit
        pass


async def handler():
    threading.Thread(target=refresh, name="cache-refresh").start()
    while not taken.is_set():
        await pause(0.001)
    with measured():
        look_up()


if __name__ == "__main__":
    run(handler)
