"""Waits for ever in one callback, for threads that wait for each other, or for one that only takes its time.

    circles.py KIND FOLDER

FOLDER is for files of the program's own. Says `waits` before the last wait.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(sys.argv[2])
NEVER = threading.Event()
LATE_S = 3600
A, B, C = threading.Lock(), threading.Lock(), threading.Lock()
RA, RB = threading.RLock(), threading.RLock()


def waits():
    sys.stdout.write("waits\n")
    sys.stdout.flush()


def in_thread(name, work):
    """The thread that runs `work(taken)`, once it has called `taken`."""
    is_taken = threading.Event()
    thread = threading.Thread(target=work, args=(is_taken.set,), name=name, daemon=True)
    thread.start()
    is_taken.wait()
    return thread


def holds_and_wants(held, wanted):
    def hold_and_want(taken):
        with held:
            taken()
            with wanted:
                pass

    return hold_and_want


def two_locks():
    with A:
        in_thread("other", holds_and_wants(B, A))
        waits()
        with B:
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


def three_threads():
    with A:
        in_thread("third", holds_and_wants(C, A))
        in_thread("second", holds_and_wants(B, C))
        waits()
        with B:
            pass


def join_in_the_lock(timeout=None):
    def want(taken):
        taken()
        with A:
            pass

    with A:
        worker = in_thread("worker", want)
        waits()
        worker.join(timeout)


def import_in_the_lock():
    (FOLDER / "wants_the_lock.py").write_text("import circles_locks\nwith circles_locks.A:\n    pass\n")
    sys.path.insert(0, str(FOLDER))
    sys.modules["circles_locks"] = sys.modules["__main__"]

    def load(taken):
        taken()
        importlib.import_module("wants_the_lock")

    with A:
        in_thread("importer", load)
        while "wants_the_lock" not in sys.modules:
            NEVER.wait(0.001)
        waits()
        importlib.import_module("wants_the_lock")


def result_of_a_pool(timeout=None):
    pool = ThreadPoolExecutor(1, thread_name_prefix="pool")

    def want():
        with A:
            pass

    with A:
        future = pool.submit(want)
        waits()
        future.result(timeout)


async def answer():
    await asyncio.sleep(0.2)


def asks_the_loop():
    loop = asyncio.get_running_loop()

    def ask(taken):
        with A:
            future = asyncio.run_coroutine_threadsafe(answer(), loop)
            taken()
            future.result()

    in_thread("asker", ask)


def loop_that_has_not_begun():
    asks_the_loop()
    waits()
    with A:
        pass


async def loop_that_has_begun():
    asks_the_loop()
    for _ in range(3):
        await asyncio.sleep(0)  # the loop takes what it was asked
    waits()
    with A:
        pass


def loop_of_its_own():
    future = asyncio.run_coroutine_threadsafe(answer(), asyncio.get_running_loop())
    waits()
    future.result()


def behind_a_circle():
    def first(taken):
        with A:
            in_thread("second", holds_and_wants(B, A))
            taken()
            with B:
                pass

    in_thread("first", first)
    waits()
    with A:
        pass


# ---- by context managers ---------------------------------------------------------------------------


@contextmanager
def holding(lock):
    with lock:
        yield


@contextmanager
def holding_both(first, second):
    with holding(first), second:
        yield


def context_managers():
    def other(taken):
        with holding_both(B, C):
            taken()
            with holding(A):
                pass

    with holding(A):
        in_thread("other", other)
        waits()
        with B:
            pass


def rlocks_of_context_managers():
    def other(taken):
        with holding(RB):
            taken()
            with holding(RA):
                pass

    with holding(RA):
        in_thread("other", other)
        waits()
        with holding(RB):
            pass


def manager_that_let_go():
    @contextmanager
    def held_at_first():
        with A:
            pass
        yield

    with held_at_first():
        A.acquire()
        waits()
        with A:
            pass


# ---- that a timeout ends ---------------------------------------------------------------------------


def lock_with_a_timeout():
    with A:
        in_thread("other", holds_and_wants(B, A))
        waits()
        B.acquire(timeout=LATE_S)


def other_lock_with_a_timeout():
    def other(taken):
        with B:
            taken()
            A.acquire(timeout=LATE_S)

    with A:
        in_thread("other", other)
        waits()
        with B:
            pass


def rlock_with_a_timeout():
    with RA:
        in_thread("other", holds_and_wants(RB, RA))
        waits()
        RB.acquire(timeout=LATE_S)


def join_with_a_timeout():
    join_in_the_lock(LATE_S)


def result_with_a_timeout():
    result_of_a_pool(LATE_S)


# ---- none ------------------------------------------------------------------------------------------


def busy_lock():
    def keep(taken):
        with A:
            taken()
            NEVER.wait()

    in_thread("keeper", keep)
    waits()
    with A:
        pass


def chain_without_end():
    def keep(taken):
        with C:
            taken()
            NEVER.wait()

    in_thread("keeper", keep)
    in_thread("second", holds_and_wants(B, C))
    waits()
    with A, B:
        pass


def opposite_order_in_time():
    """Both orders, one after the other; in the end it is the second that is waited for."""

    def other(taken):
        with B, A:
            pass
        with B:
            taken()
            NEVER.wait()

    in_thread("other", other)
    waits()
    with A, B:
        pass


def locks_by_acquire():
    """It is a circle, and who has a lock of `acquire()` cannot be known."""
    A.acquire()

    def other(taken):
        B.acquire()
        taken()
        A.acquire()

    in_thread("other", other)
    waits()
    B.acquire()


def result_of_other_loop():
    """The holder waits for a loop that has nothing to do with it."""
    other = asyncio.new_event_loop()
    threading.Thread(target=other.run_forever, name="loop", daemon=True).start()

    async def never():
        await asyncio.sleep(3600)

    def ask(taken):
        with A:
            future = asyncio.run_coroutine_threadsafe(never(), other)
            taken()
            future.result()

    in_thread("asker", ask)
    waits()
    with A:
        pass


async def main():
    done = globals()[sys.argv[1]]()
    if done is not None:
        await done


if __name__ == "__main__":
    asyncio.run(main())
