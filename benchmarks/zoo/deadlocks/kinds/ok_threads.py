"""Programs whose loop waits for threads that go on: stalls, and no deadlocks."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from zoo.deadlocks.catalogue import asked, control


@control
async def a_thread_that_takes_long():
    """The loop waits, in a lock, for a thread that takes long and needs another lock."""
    orders, stock = threading.Lock(), threading.Lock()

    def count():
        with stock:
            time.sleep(1)

    with ThreadPoolExecutor(1) as pool:
        while True:
            with orders:
                pool.submit(count).result()
            await asyncio.sleep(0.1)


@control
async def locks_of_a_busy_bank():
    """Loop and threads take two locks in the same order, and hold them long."""
    accounts, ledger = threading.RLock(), threading.RLock()

    def transfers():
        while True:
            with accounts, ledger:
                time.sleep(0.3)
            time.sleep(0.01)

    for number in range(3):
        threading.Thread(target=transfers, name=f"teller {number}", daemon=True).start()
    while True:
        with accounts, ledger:
            pass
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    asyncio.run(asked()())
