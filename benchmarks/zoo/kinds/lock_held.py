"""A handler waits for a lock that a thread holds."""

from __future__ import annotations

import threading
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["lock"], "loops": "all"}
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
    with measured():
        threading.Thread(target=update_prices, name="updater").start()
        taken.wait()
        read_price()


if __name__ == "__main__":
    run(handler)
