"""Deadlocks of tasks and the threads that work for them: a thread asks the loop for what needs its
task, or its lock.

Those named `anyio` run on asyncio, or with `on_trio` on trio; those named `trio` on trio itself.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import anyio
import anyio.from_thread
import trio

from zoo.deadlocks.catalogue import asked, deadlock


class Cache:
    """Blocking code, in a thread, calls `fetch` on the loop, which needs the lock."""

    def __init__(self):
        self.lock, self.loop = asyncio.Lock(), asyncio.get_running_loop()
        self.pool = ThreadPoolExecutor(thread_name_prefix="pool")

    async def fetch(self):
        asyncio.current_task().set_name("fetch")
        async with self.lock:
            return 1

    def load(self):
        return asyncio.run_coroutine_threadsafe(self.fetch(), self.loop).result()

    async def reload(self, wait):
        async with self.lock:
            await wait()


async def reload_by(wait):
    cache = Cache()
    await asyncio.create_task(cache.reload(partial(wait, cache)), name="reload")


IN_POOL = {"reload": "the thread pool_0", "pool_0": "the task fetch", "fetch": "Cache.lock"}


@deadlock({"reload": "the thread asyncio_0", "asyncio_0": "the task fetch", "fetch": "Cache.lock"})
async def a_thread_asks_its_loop():
    """A reload gives its thread work in the lock that a coroutine of the thread needs."""
    await reload_by(lambda cache: asyncio.to_thread(cache.load))


@deadlock(IN_POOL)
async def a_pool_asks_its_loop():
    """The same, in a pool of its own, with a minute for it."""
    await reload_by(lambda cache: asyncio.wait_for(cache.loop.run_in_executor(cache.pool, cache.load), 60))


@deadlock(IN_POOL)
async def a_gathered_thread_asks_its_loop():
    """The same, gathered with other work, and shielded."""
    await reload_by(
        lambda cache: asyncio.gather(
            asyncio.sleep(0.1), asyncio.shield(asyncio.wrap_future(cache.pool.submit(cache.load)))
        )
    )


@deadlock(
    {"reload": "the thread pool_0", "pool_0": "the thread loads", "loads": "the task fetch", "fetch": "Lock"}
)
async def a_joined_thread_asks_its_loop():
    """The thread in the pool joins another one, which asks the loop."""

    def joins(cache):
        thread = threading.Thread(target=cache.load, name="loads")
        thread.start()
        thread.join()

    await reload_by(lambda cache: cache.loop.run_in_executor(cache.pool, joins, cache))


@deadlock({"report": "the thread asyncio_0", "asyncio_0": "the task totals", "totals": "the task report"})
async def a_thread_asks_for_its_own_task():
    """A report's thread waits for a coroutine that waits for the report. No lock is in it."""
    loop = asyncio.get_running_loop()

    async def totals():
        asyncio.current_task().set_name("totals")
        await reports[0]

    async def report():
        await asyncio.to_thread(lambda: asyncio.run_coroutine_threadsafe(totals(), loop).result())

    reports = [asyncio.create_task(report(), name="report")]
    await asyncio.gather(asyncio.Event().wait(), *reports)


# ---- anyio and trio -------------------------------------------------------------------------------


def named(name, function, *args):
    """In this thread, which has this name from now on."""
    threading.current_thread().name = name
    return function(*args)


async def in_thread(name, function, *args, **options):
    await anyio.to_thread.run_sync(partial(named, name, function, *args), **options)


async def in_a_portal():
    async with anyio.from_thread.BlockingPortal() as portal:
        lock = anyio.Lock()

        async def needs_it():
            async with lock:
                pass

        async def request():
            async with lock:
                await in_thread("worker", portal.call, needs_it)

        async with anyio.create_task_group() as group:
            group.start_soon(request, name="request")


BY_PORTAL = "anyio.from_thread.BlockingPortal._call_func"


@deadlock({"request": "the thread worker", "worker": f"the task {BY_PORTAL}", BY_PORTAL: "Lock"})
async def anyio_portal():
    """A request's thread calls the loop by a portal for what needs the request's lock."""
    await in_a_portal()


@deadlock({"request": "the thread worker", "worker": f"the task {BY_PORTAL}", BY_PORTAL: "Lock"})
async def anyio_portal_on_trio():
    """The same on trio."""
    await in_a_portal()


@deadlock({"request": "the thread worker", "worker": "the task inner", "inner": "CapacityLimiter"})
async def anyio_thread_in_a_thread():
    """A limiter of one thread: the thread calls the loop for work in another thread."""
    places = anyio.CapacityLimiter(1)

    async def inner():
        asyncio.current_task().set_name("inner")
        await in_thread("second", int, limiter=places)

    async def request():
        await in_thread("worker", anyio.from_thread.run, inner, limiter=places)

    async with anyio.create_task_group() as group:
        group.start_soon(request, name="request")


@deadlock({"request": "the thread worker", "worker": "the task zoo.needs_it", "zoo.needs_it": "Lock"})
async def trio_token():
    """A request's thread runs a system task of trio that needs the request's lock."""
    lock, token = trio.Lock(), trio.lowlevel.current_trio_token()

    async def needs_it():
        async with lock:
            pass

    needs_it.__module__, needs_it.__qualname__ = "zoo", "needs_it"

    async def request():
        async with lock:
            await trio.to_thread.run_sync(
                named, "worker", partial(trio.from_thread.run, needs_it, trio_token=token)
            )

    async with trio.open_nursery() as nursery:
        nursery.start_soon(request, name="request")


if __name__ == "__main__":
    program = asked()
    if sys.argv[1].startswith("trio"):
        trio.run(program)
    elif "anyio" in sys.argv[1]:
        anyio.run(program, backend="trio" if "trio" in sys.argv[1] else "asyncio")
    else:
        asyncio.run(program())
