"""A handler waits for a lock that a thread holds."""

from __future__ import annotations

import threading
import time

from zoo.stage import measured, pause, run

EXPECT = {"cause": ["lock"], "thread": ["updater"], "loops": "all"}
prices = threading.Lock()
taken = threading.Event()


def update_prices():
    with prices:
        taken.set()
        time.sleep(0.3)  # <- holder


def read_price():
    with prices:  # <- culprit
        pass


async def handler():
    threading.Thread(target=update_prices, name="updater").start()
    while not taken.is_set():
        await pause(0.001)
    with measured():
        read_price()


if __name__ == "__main__":
    run(handler)
