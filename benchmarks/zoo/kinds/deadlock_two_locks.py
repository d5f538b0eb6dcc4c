"""A handler and a thread take two locks in opposite order; killed in the deadlock."""

from __future__ import annotations

import threading
import time

from zoo.stage import measured, run

EXPECT = {
    "cause": ["lock"],
    "thread": ["refunds"],
    "killed": True,
    "advice": ["same order"],
}
accounts, ledger = threading.Lock(), threading.Lock()
taken = threading.Event()


def refund():
    with ledger:
        taken.set()
        time.sleep(0.05)
        with accounts:  # <- holder
            pass


def pay():
    with ledger:  # <- culprit
        pass


async def handler():
    with measured(), accounts:
        threading.Thread(target=refund, name="refunds", daemon=True).start()
        taken.wait()
        pay()


if __name__ == "__main__":
    run(handler)
