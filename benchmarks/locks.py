"""What the tracer of locks costs a program whose locks are all right: `async with`, free and with tasks in
line, and a look at 10,000 tasks that wait.

The ratios are CPU time with the hooks by that without, pair by pair, in one process. They need no engine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import anyio
from anyio._backends import _asyncio
from harness import table
from harness.table import Ratio

from loopcanary.tracers.locks.asyncio_tasks import view_of
from loopcanary.tracers.locks.hooks import LockHooks

PAIRS = table.sized(9, 1)
TIMES = table.sized(100_000, 2_000)
TASKS = table.sized(10_000, 100)
LOOK_MS = 50

Kind = Callable[[], Any]
KINDS: dict[str, Kind] = {
    "Lock": asyncio.Lock,
    "Semaphore": asyncio.Semaphore,
    "anyio.Lock": anyio.Lock,
    "anyio.Semaphore": partial(anyio.Semaphore, 1),
}


async def free(kind: Kind) -> None:
    """One task."""
    lock = kind()
    for _ in range(TIMES):
        async with lock:
            pass


async def in_line(kind: Kind) -> None:
    """Four tasks, one after the other."""
    lock = kind()

    async def one() -> None:
        for _ in range(TIMES // 40):
            async with lock:
                await asyncio.sleep(0)

    await asyncio.gather(*(one() for _ in range(4)))


def cpu_s(work: Callable[[], Coroutine[Any, Any, None]]) -> float:
    """Of one run."""
    began = time.process_time()
    asyncio.run(work())
    return time.process_time() - began


def ratio(work: Callable[[Kind], Coroutine[Any, Any, None]], kind: Kind) -> Ratio:
    """With the hooks by without."""
    hooks = LockHooks(lambda _: None, print, lambda _: None)
    pairs = []
    for _ in range(PAIRS):
        without = cpu_s(lambda: work(kind))
        hooks.put_in()
        hooks.put_in_anyio(_asyncio)
        pairs.append((cpu_s(lambda: work(kind)), without))
        hooks.take_out()
    return Ratio.of(pairs)


async def look_ms() -> float:
    """CPU time of what is read of the tasks."""
    lock = asyncio.Lock()
    await lock.acquire()

    async def waits() -> None:
        async with lock:
            pass

    tasks = [asyncio.create_task(waits()) for _ in range(TASKS)]
    await asyncio.sleep(0)
    began = time.process_time()
    for task in asyncio.all_tasks():
        view_of(task)
    took = time.process_time() - began
    for task in tasks:
        task.cancel()
    return took * 1000


def measure() -> None:
    """One row each."""
    for name, kind in KINDS.items():
        table.ratio_at_most(f"async with {name}", ratio(free, kind), 1.00)
        table.ratio_at_most(f"async with {name}, four in line", ratio(in_line, kind), 1.02)
    table.at_most(f"look at {TASKS:,} tasks", asyncio.run(look_ms()), LOOK_MS, unit="ms of CPU")


if __name__ == "__main__":
    table.run(measure)
