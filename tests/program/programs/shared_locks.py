"""Waits for ever in one callback, for locks of multiprocessing: in a circle of threads, or in none.

    shared_locks.py KIND FOLDER

Says `waits` before the last wait.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import threading
from contextlib import suppress

from circles import LATE_S, NEVER, holding, holds_and_wants, in_thread, waits

FORKS = multiprocessing.get_context("fork")
A, B = FORKS.Lock(), FORKS.Lock()
RA, RB = FORKS.RLock(), FORKS.RLock()
PLAIN = threading.Lock()
NEWS, NEWS_OF_LOCK = FORKS.Condition(), FORKS.Condition(FORKS.Lock())


def in_child(work):
    """A process that runs `work`, has done so, and lives until this one ends."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        work()
        os.write(writing, b"1")
        parent = os.getppid()
        while os.getppid() == parent:
            NEVER.wait(0.2)
        os._exit(0)
    os.read(reading, 1)


def in_block_of(first, second):
    with first:
        in_thread("other", holds_and_wants(second, first))
        waits()
        with second:
            pass


# ---- circles ---------------------------------------------------------------------------------------


def two_locks():
    in_block_of(A, B)


def a_lock_and_one_of_threads():
    in_block_of(PLAIN, A)


def two_conditions():
    in_block_of(NEWS, NEWS_OF_LOCK)


def context_managers():
    def other(taken):
        with holding(B):
            taken()
            with holding(A):
                pass

    with holding(A):
        in_thread("other", other)
        waits()
        with holding(B):
            pass


def two_rlocks_by_acquire():
    RA.acquire()

    def other(taken):
        RB.acquire()
        taken()
        RA.acquire()

    in_thread("other", other)
    waits()
    RB.acquire()


def join_in_the_lock():
    def want(taken):
        taken()
        A.acquire()

    with A:
        worker = in_thread("worker", want)
        waits()
        worker.join()


def lock_with_a_timeout():
    with A:
        in_thread("other", holds_and_wants(B, A))
        waits()
        B.acquire(timeout=LATE_S)


# ---- none ------------------------------------------------------------------------------------------


def busy_lock():
    def keep(taken):
        with A:
            taken()
            NEVER.wait()

    in_thread("other", keep)
    waits()
    with A:
        pass


def lock_that_others_wait_for():
    def want(taken):
        taken()
        with RA:
            pass

    def keep(taken):
        with RA:
            taken()
            NEVER.wait()

    in_thread("other", keep)
    in_thread("first", want)
    in_thread("second", want)
    waits()
    with RA:
        pass


def lock_that_a_child_may_release():
    """Taken outside of a block: it may be a signal that another process gives."""
    A.acquire()

    def other(taken):
        with B:
            taken()
            A.acquire()

    in_thread("other", other)
    waits()
    with B:
        pass


def lock_that_a_child_took_over():
    """This process's word for the holder is an old one."""

    def keep(taken):
        A.acquire()
        taken()
        with PLAIN:
            pass

    def take_over():
        A.release()
        with suppress(ValueError):
            A.acquire()

    PLAIN.acquire()
    in_thread("other", keep)
    in_child(take_over)
    waits()
    A.acquire()


def own_signal():
    """It waits for the lock that it took itself, until another process releases it."""
    A.acquire()
    waits()
    A.acquire()


def lock_of_a_child():
    in_child(A.acquire)
    waits()
    with A:
        pass


def rlock_of_a_child():
    in_child(RA.acquire)
    waits()
    with RA:
        pass


def semaphore():
    permits = FORKS.Semaphore(1)

    def keep(taken):
        with permits, A:
            taken()
            with B:
                pass

    with B:
        in_thread("other", keep)
        waits()
        permits.acquire()


def condition_that_let_go():
    """The other one has its lock, and not the condition's, while it waits for the notice."""

    def keep(taken):
        with A, NEWS:
            taken()
            NEWS.wait()

    in_thread("other", keep)
    with NEWS:
        waits()
        with A:
            pass


def empty_queue():
    items = FORKS.Queue()
    in_thread("other", lambda taken: (taken(), items.get()))
    while not items._rlock._semlock._is_zero():
        NEVER.wait(0.001)
    waits()
    items.get()


def full_queue():
    """Its room for one item is a lock that the other one acquired, and the reader releases."""
    items = FORKS.Queue(1)

    def fill(taken):
        items.put("first")
        taken()
        NEVER.wait()

    in_thread("other", fill)
    waits()
    items.put("second")


async def main():
    globals()[sys.argv[1]]()


if __name__ == "__main__":
    asyncio.run(main())
