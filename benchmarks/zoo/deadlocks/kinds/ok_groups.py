"""Programs of anyio and trio that look like a deadlock, and are none. Those named `trio` use it."""

from __future__ import annotations

import sys
import time

import anyio
import trio

from zoo.deadlocks.catalogue import asked, control
from zoo.deadlocks.kinds.ok_asyncio import LONG_S


@control
async def anyio_race():
    """In a lock, a task that needs it loses a race, and is cancelled by the winner."""
    lock = anyio.Lock()

    async def wins(scope):
        await anyio.sleep(LONG_S)
        scope.cancel()

    async def needs_it():
        async with lock:
            pass

    async with lock, anyio.create_task_group() as group:
        group.start_soon(wins, group.cancel_scope)
        group.start_soon(needs_it)


@control
async def anyio_limiter_of_threads():
    """Threads hold all places of a limiter."""
    places = anyio.CapacityLimiter(1)
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(lambda: anyio.to_thread.run_sync(time.sleep, LONG_S, limiter=places))


@control
async def anyio_limiter_that_grows_on_trio():
    """A lock and a limiter in both orders, until a task makes the limiter larger."""
    places, lock = anyio.CapacityLimiter(1), anyio.Lock()

    async def grows():
        await anyio.sleep(LONG_S)
        places.total_tokens = 2

    async def moves(first, second):
        async with first:
            await anyio.sleep(0.1)
            async with second:
                pass

    async with anyio.create_task_group() as group:
        group.start_soon(grows)
        group.start_soon(moves, places, lock)
        group.start_soon(moves, lock, places)


@control
async def trio_started_by_a_helper():
    """A server that needs the lock is said to have started by another task."""
    lock = trio.Lock()

    async def helps(task_status):
        await trio.sleep(LONG_S)
        task_status.started()

    async def serves(*, task_status):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(helps, task_status)
            async with lock:
                pass

    async with trio.open_nursery() as nursery, lock:
        await nursery.start(serves)


@control
async def trio_slow_holder():
    """A task holds a lock for 40 seconds, and others wait."""
    lock = trio.Lock()

    async def works():
        async with lock:
            await trio.sleep(LONG_S)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(works)


@control
async def trio_busy_fair_lock():
    """Ten tasks share a fair lock that is held all the time."""
    lock = trio.StrictFIFOLock()

    async def works():
        while True:
            async with lock:
                await trio.sleep(0.5)

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(works)


if __name__ == "__main__":
    program = asked()
    if sys.argv[1].startswith("trio"):
        trio.run(program)
    else:
        anyio.run(program, backend="trio" if "trio" in sys.argv[1] else "asyncio")
