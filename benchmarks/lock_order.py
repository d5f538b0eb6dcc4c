"""What `--lock-order` costs locks of threads: `with lock`, one alone, one inside another one, and a queue
between two threads.

The ratios are CPU time with the hooks by that without, pair by pair, in one process whose engine runs.
"""

from __future__ import annotations

import queue
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from harness import table
from harness.table import Ratio

import loopcanary

PAIRS = 15
TIMES = 200_000
outer, inner = threading.Lock(), threading.Lock()
again = threading.RLock()


def alone(lock: AbstractContextManager[Any]) -> None:
    """`with lock`."""
    for _ in range(TIMES):
        with lock:
            pass


def nested() -> None:
    """The same two, in the same order."""
    for _ in range(TIMES):
        with outer, inner:
            pass


def handed_over() -> None:
    """Each message wakes the other thread."""
    there: queue.Queue[int] = queue.Queue(1)

    def take() -> None:
        for _ in range(TIMES // 20):
            there.get()

    other = threading.Thread(target=take)
    other.start()
    for number in range(TIMES // 20):
        there.put(number)
    other.join()


def fresh() -> None:
    """Locks that are made for one use each."""
    for _ in range(TIMES // 20):
        lock = threading.Lock()
        with outer, lock:
            pass


def cpu_s(work: Callable[[], None]) -> float:
    """Of one run, both threads."""
    began = time.process_time()
    work()
    return time.process_time() - began


def compare(what: str, work: Callable[[], None], times: int) -> None:
    """One row."""
    pairs = []
    for _ in range(PAIRS):
        without = cpu_s(work)
        loopcanary.start_tracers("orders")
        pairs.append((cpu_s(work), without))
        loopcanary.stop_tracers("orders")
    more = min(one for one, _ in pairs) - min(other for _, other in pairs)
    table.told(what, Ratio.of(pairs), note=f"{more / times * 1e9:.0f} ns more")


def measure() -> None:
    """One row each."""
    with tempfile.TemporaryDirectory() as folder:
        loopcanary.install(store=folder, quiet=True, lock_order=True)
        loopcanary.stop_tracers("orders")
        compare("with Lock", lambda: alone(outer), TIMES)
        compare("with RLock", lambda: alone(again), TIMES)
        compare("with Lock in another one", nested, TIMES)
        compare("a message by a Queue", handed_over, TIMES // 20)
        compare("a Lock made in another one's block", fresh, TIMES // 20)
        loopcanary.uninstall()


if __name__ == "__main__":
    table.run(measure)
