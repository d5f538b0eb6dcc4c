"""Programs whose loop waits for threads that go on: stalls, and no deadlocks."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from zoo.deadlocks.catalogue import asked, control

FORKS = multiprocessing.get_context("fork")


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


@control
async def a_lock_of_busy_processes():
    """Loop, thread and a process share a lock, and hold it long."""
    shared, own = FORKS.Lock(), FORKS.RLock()
    FORKS.Process(target=holds_again_and_again, args=(shared,), daemon=True).start()

    def audits():
        while True:
            with own, shared:
                time.sleep(0.3)
            time.sleep(0.01)

    threading.Thread(target=audits, daemon=True).start()
    while True:
        with own:
            pass
        with shared:
            pass
        await asyncio.sleep(0.1)


@control
async def a_signal_between_processes():
    """A lock that this process takes, and another one releases: what waits for it, in a lock, will go on."""
    done, orders = FORKS.Lock(), threading.Lock()

    def work():
        with orders:
            done.acquire()

    while True:
        done.acquire()
        FORKS.Process(target=releases_late, args=(done,), daemon=True).start()
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        worker.join()
        done.release()
        await asyncio.sleep(0.1)


def holds_again_and_again(lock):
    while multiprocessing.parent_process().is_alive():
        if lock.acquire(timeout=1):  # that process may be killed while it holds it
            time.sleep(0.3)
            lock.release()
        time.sleep(0.01)


def releases_late(lock):
    time.sleep(1)
    lock.release()


if __name__ == "__main__":
    asyncio.run(asked()())
