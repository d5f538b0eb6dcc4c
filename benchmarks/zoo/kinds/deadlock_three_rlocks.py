"""Three threads wait for each other in a circle, one of them the loop's; killed in the deadlock."""

from __future__ import annotations

import threading

from zoo.stage import measured, run

EXPECT = {
    "cause": ["lock"],
    "thread": ["stock"],
    "killed": True,
    "advice": ["same order"],
}
orders, stock, prices = threading.RLock(), threading.RLock(), threading.RLock()
all_taken = threading.Barrier(3)


def update_stock():
    with stock:
        all_taken.wait()
        with prices:  # <- holder
            pass


def update_prices():
    with prices:
        all_taken.wait()
        with orders:
            pass


def order():
    with stock:  # <- culprit
        pass


async def handler():
    with measured(), orders:
        threading.Thread(target=update_stock, name="stock", daemon=True).start()
        threading.Thread(target=update_prices, name="prices", daemon=True).start()
        all_taken.wait()
        order()


if __name__ == "__main__":
    run(handler)
