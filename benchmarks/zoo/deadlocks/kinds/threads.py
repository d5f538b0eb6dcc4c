"""The loop's thread in a circle of threads. Its stall is the deadlock: no `--locks` is needed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import trio

from zoo.deadlocks.catalogue import asked, deadlock


def start(work, *args, name):
    thread = threading.Thread(target=work, args=args, name=name, daemon=True)
    thread.start()
    return thread


def take(first, second):
    with first:
        time.sleep(0.2)
        with second:
            pass


@deadlock({"MainThread": "the RLock that teller holds", "teller": "the RLock that MainThread holds"})
async def transfers_of_threads():
    """Two accounts, and a transfer from each to the other, one by the loop and one by a pool."""
    alice, bob = threading.RLock(), threading.RLock()
    with ThreadPoolExecutor(
        1, initializer=lambda: setattr(threading.current_thread(), "name", "teller")
    ) as pool:
        pool.submit(take, bob, alice)
        take(alice, bob)


@deadlock(
    {
        "MainThread": "lock that t1 holds",
        "t1": "lock that t2 holds",
        "t2": "lock that t3 holds",
        "t3": "MainThread",
    }
)
async def four_threads():
    """Four stages of a pipeline, each with the lock of one and in need of the next one's."""
    locks = [threading.Lock() for _ in range(4)]
    for number in range(1, 4):
        start(take, locks[number], locks[(number + 1) % 4], name=f"t{number}")
    take(locks[0], locks[1])


@deadlock({"MainThread": "RLock that audit holds", "audit": "lock that MainThread holds"})
async def logging_in_a_lock():
    """A log handler counts in the program's lock, and the loop logs in that lock."""
    lock = threading.Lock()

    class Counts(logging.Handler):
        def emit(self, record):
            time.sleep(0.2)
            with lock:
                pass

    log = logging.getLogger("shop")
    log.addHandler(Counts())
    with lock:
        start(log.warning, "a sale", name="audit")
        time.sleep(0.1)
        log.warning("a price")


@deadlock({"MainThread": "RLock that producer holds", "producer": "lock that MainThread holds"})
async def condition_of_threads():
    """A condition of threads and a lock, in both orders."""
    news, stats = threading.Condition(), threading.Lock()

    def produce():
        with news:
            time.sleep(0.2)
            with stats:
                news.notify()

    start(produce, name="producer")
    with stats:
        time.sleep(0.1)
        with news:
            pass


@deadlock({"MainThread": "worker", "worker": "result"})
async def joins_who_waits_for_the_loop():
    """The loop joins a worker that waits for a coroutine on the loop."""
    loop = asyncio.get_running_loop()

    def work():
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result()

    start(work, name="worker").join()


@deadlock({"MainThread": "lock that printer holds", "printer": "lock that MainThread holds"})
async def a_trio_loop_and_a_thread():
    """A loop of trio and a thread take two locks in opposite order."""
    paper, ink = threading.Lock(), threading.Lock()
    start(take, ink, paper, name="printer")
    take(paper, ink)


@deadlock({"MainThread": "the lock that MainThread holds"})
async def a_lock_twice():
    """A handler calls, in a lock, a function that takes the lock."""
    lock = threading.Lock()

    def save():
        with lock:
            pass

    with lock:
        save()


@deadlock({"MainThread": "the lock that MainThread holds"})
async def a_lock_twice_by_context_managers():
    """The same with a context manager of the program's own around the lock."""
    lock = threading.Lock()

    @contextlib.contextmanager
    def locked():
        with lock:
            yield

    with locked(), locked():
        pass


@deadlock({"MainThread": "RLock that sender holds", "sender": "RLock that MainThread holds"})
async def a_circle_with_a_timeout():
    """A thread gives up after five seconds: a circular wait."""
    inbox, outbox = threading.RLock(), threading.RLock()

    def send():
        with outbox:
            time.sleep(0.2)
            inbox.acquire(timeout=5)

    start(send, name="sender")
    take(inbox, outbox)


@deadlock(
    {"MainThread": "multiprocessing.Lock that feeder", "feeder": "multiprocessing.Lock that MainThread"}
)
async def locks_of_multiprocessing():
    """Two arrays that processes share, with a lock each: loop and thread take them in opposite order."""
    prices, stock = multiprocessing.Lock(), multiprocessing.Lock()
    start(take, stock, prices, name="feeder")
    take(prices, stock)


@deadlock({"MainThread": "multiprocessing.RLock that sums", "sums": "lock that MainThread"})
async def a_shared_value_and_a_lock():
    """A counter that processes share has an RLock of its own, and a thread logs in it."""
    counter, log = multiprocessing.Value("q"), threading.Lock()
    start(take, counter.get_lock(), log, name="sums")
    take(log, counter.get_lock())


@deadlock({"MainThread": "lock", "worker": "Queue"}, unseen="a queue of threads is waited for, not a thread")
async def a_queue_of_threads():
    """A thread puts, in a lock, into a full queue that the loop would empty if it had the lock."""
    items, lock = queue.Queue(1), threading.Lock()

    def work():
        with lock:
            items.put(1)
            items.put(2)

    start(work, name="worker")
    time.sleep(0.1)
    with lock:
        items.get()


if __name__ == "__main__":
    program = asked()
    if "trio" in program.__name__:
        trio.run(program)
    else:
        asyncio.run(program())
