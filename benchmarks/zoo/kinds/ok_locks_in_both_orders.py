"""Control: a handler and a thread take two locks in opposite order, one after the other."""

from __future__ import annotations

import threading

from zoo.stage import pause, run

EXPECT = {"control": True, "loops": "all"}
accounts, ledger = threading.Lock(), threading.Lock()
done = threading.Event()


def refund():
    for _ in range(100):
        with ledger, accounts:
            pass
    done.set()


async def handler():
    for _ in range(3):
        done.clear()
        threading.Thread(target=refund, name="refunds", daemon=True).start()
        while not done.is_set():
            await pause(0.005)
        with accounts, ledger:
            pass


if __name__ == "__main__":
    run(handler)
