"""Programs whose tasks wait for ever, each by a name, and others that look alike."""

from __future__ import annotations

import asyncio
import contextlib
import sys

try:
    import anyio
except ImportError:
    anyio = None


async def crosswise(first, second, inside=contextlib.nullcontext):
    async with first:
        await asyncio.sleep(0.05)
        with inside():
            async with second:
                pass


async def two_locks(inside=contextlib.nullcontext):
    one, other = asyncio.Lock(), asyncio.Lock()
    pay = asyncio.create_task(crosswise(one, other, inside), name="pay")
    refund = asyncio.create_task(crosswise(other, one), name="refund")
    await asyncio.wait([pay, refund])


async def two_locks_beside_work():
    stuck = asyncio.create_task(two_locks())
    loop = asyncio.get_running_loop()

    def turns():
        loop.call_later(0.02, turns)

    turns()
    await stuck


async def lock_and_task():
    lock = asyncio.Lock()

    async def child():
        async with lock:
            pass

    async with lock:
        await asyncio.create_task(child(), name="child")


async def within_a_timeout():
    one, other = asyncio.Lock(), asyncio.Lock()
    pay = asyncio.create_task(asyncio.wait_for(crosswise(one, other), 3600))
    await asyncio.wait([pay, asyncio.create_task(asyncio.wait_for(crosswise(other, one), 3600))])


async def within_a_scope():
    await two_locks(lambda: anyio.fail_after(3600))


async def without_work():
    queue = asyncio.Queue()
    await asyncio.gather(*(asyncio.create_task(queue.get()) for _ in range(20)))


async def held_for_long():
    lock = asyncio.Lock()

    async def holds():
        async with lock:
            await asyncio.sleep(3600)

    async def wants():
        async with lock:
            pass

    await asyncio.gather(holds(), wants(), wants())


async def let_go_for_a_while():
    lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def unlocked():
        lock.release()
        try:
            yield
        finally:
            await lock.acquire()

    async def takes():
        await lock.acquire()
        await asyncio.sleep(3600)

    async with lock:
        taken = asyncio.create_task(takes())
        async with unlocked():
            await asyncio.sleep(0.05)
            async with lock:
                await taken


async def enters_a_manager():
    lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def session():
        async with lock:
            yield

    async def enters():
        async with session():
            pass

    await lock.acquire()
    await asyncio.gather(enters(), enters())


async def nested_managers():
    one, other = asyncio.Lock(), asyncio.Lock()

    @contextlib.asynccontextmanager
    async def session(lock):
        async with lock:
            yield

    async def crosses(first, second):
        async with session(first):
            await asyncio.sleep(0.05)
            async with session(second):
                pass

    await asyncio.gather(crosses(one, other), crosses(other, one))


asyncio.run(globals()[sys.argv[1]]())
