"""Loops with one bug each, and the same without the line of the bug: `python programs.py NAME [mended]`.

Every second the loop does its work; between, it has a callback each 5 ms.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time

TIMES = 7
MENDED = sys.argv[2:] == ["mended"]


def compute(seconds: float) -> None:
    """Python for so much CPU time: as much work on a busy machine as on an idle one."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(200))


def slow_line() -> None:
    """One callback that computes."""
    if not MENDED:
        compute(0.25)


def hold_the_gil() -> None:
    """A thread in a C call that keeps the GIL."""
    if not MENDED:
        threading.Thread(target=sort_rows).start()
    time.sleep(0.001)


def sort_rows() -> None:
    """Some 200 ms in one call."""
    sorted(ROWS)


LOCK = threading.Lock()


def wait_for_a_lock() -> None:
    """The loop wants what a thread holds for 200 ms."""
    held = threading.Event()
    if not MENDED:
        threading.Thread(target=recount, args=(held,)).start()
        held.wait()
    with LOCK:
        pass


def recount(held: threading.Event) -> None:
    """Holds the lock while it waits."""
    with LOCK:
        held.set()
        time.sleep(0.2)


def collect() -> None:
    """Asks for a collection of a heap of small objects."""
    if not MENDED:
        gc.collect()


def burst() -> None:
    """Many short callbacks at once."""
    loop = asyncio.get_running_loop()
    for _ in range(0 if MENDED else 200):
        loop.call_soon(one_of_many)


def one_of_many() -> None:
    """A millisecond of CPU time."""
    compute(0.001)


def two_at_once() -> None:
    """A bug of 250 ms in the same callback as work of 60 ms that stays."""
    if not MENDED:
        compute(0.25)
    stays()


def stays() -> None:
    """Below the threshold alone."""
    until = time.thread_time() + 0.06
    while time.thread_time() < until:
        "".join(map(str, range(200)))


PROGRAMS = {
    "slow line": slow_line,
    "GIL holder": hold_the_gil,
    "lock": wait_for_a_lock,
    "gc": collect,
    "burst": burst,
    "two at once": two_at_once,
}
ROWS = [str(number * 7919 % 1_000_003) for number in range(300_000)] if "GIL holder" in sys.argv else []
HEAP = [[number] for number in range(1_500_000)] if "gc" in sys.argv else []


async def main() -> None:
    """The loop, idle but for ticks, then its work."""
    work = PROGRAMS[sys.argv[1]]
    gc.disable()
    for _ in range(TIMES):
        for _ in range(200):
            await asyncio.sleep(0.005)
        work()
    await asyncio.sleep(0.1)


if __name__ == "__main__":
    asyncio.run(main())
