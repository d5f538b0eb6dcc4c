"""Tasks and the threads that work for them, which look like a deadlock and are none."""

from __future__ import annotations

import asyncio
import threading
import time

from zoo.deadlocks.catalogue import asked, control
from zoo.deadlocks.kinds.ok_asyncio import LONG_S


class Cache:
    """Blocking code, in a thread, calls `fetch` on the loop, which needs the lock."""

    def __init__(self):
        self.lock, self.loop = asyncio.Lock(), asyncio.get_running_loop()

    async def fetch(self):
        async with self.lock:
            pass

    def ask(self):
        return asyncio.run_coroutine_threadsafe(self.fetch(), self.loop)


@control
async def a_thread_that_gives_up():
    """A thread asks its loop for what needs its task's lock, and gives up after a while."""
    cache = Cache()

    def loads():
        try:
            cache.ask().result(timeout=LONG_S)
        except TimeoutError:
            print("not loaded")

    async with cache.lock:
        await asyncio.to_thread(loads)


@control
async def a_thread_that_does_not_wait():
    """A thread asks its loop for what needs its task's lock, and works on."""
    cache = Cache()

    def loads():
        cache.ask()
        time.sleep(LONG_S)

    async with cache.lock:
        await asyncio.to_thread(loads)


@control
async def a_thread_that_joins_for_a_while():
    """The task's thread joins one that asks its loop, and gives up after a while."""
    cache = Cache()

    def joins():
        thread = threading.Thread(target=lambda: cache.ask().result(), daemon=True)
        thread.start()
        thread.join(LONG_S)

    async with cache.lock:
        await asyncio.to_thread(joins)


@control
async def a_thread_asks_for_what_is_slow():
    """A thread waits, for its task's lock, for a coroutine that sleeps; others wait for the lock."""
    cache = Cache()

    def loads():
        asyncio.run_coroutine_threadsafe(asyncio.sleep(LONG_S), cache.loop).result()

    async def works():
        async with cache.lock:
            await asyncio.to_thread(loads)

    await asyncio.gather(works(), works())


@control
async def a_loop_that_is_busy():
    """A thread waits for its turn in a lock that is held by a task which has the loop half of the time."""
    cache = Cache()

    async def works():
        ends = time.monotonic() + LONG_S
        async with cache.lock:
            while time.monotonic() < ends:
                await asyncio.sleep(0.05)
                sum(range(100_000))

    working = asyncio.create_task(works())
    await asyncio.sleep(0.1)
    await asyncio.to_thread(lambda: cache.ask().result())
    await working


if __name__ == "__main__":
    asyncio.run(asked()())
