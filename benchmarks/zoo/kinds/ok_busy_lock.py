"""Control: threads share a lock with a handler, each for a few milliseconds."""

from __future__ import annotations

import threading
import time

from zoo.stage import pause, run

EXPECT = {"control": True, "loops": "all"}
stock = threading.Lock()
ended = threading.Event()


def take_orders():
    while not ended.is_set():
        with stock:
            time.sleep(0.002)
        time.sleep(0.003)


async def handler():
    for number in range(3):
        threading.Thread(target=take_orders, name=f"orders-{number}", daemon=True).start()
    for _ in range(50):
        with stock:
            pass
        await pause(0.005)
    ended.set()


if __name__ == "__main__":
    run(handler)
