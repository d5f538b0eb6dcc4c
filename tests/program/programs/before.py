"""Runs work of known names, one after the other, and then stalls; see test_before.py.

    before.py LOOP [hang]

What sleeps for 20 ms is longer than that on any machine; what does nothing may be, if the machine is busy.
With `hang` the stall has no end, and the program says on stdout when it is about to begin.
"""

from __future__ import annotations

import asyncio
import sys
import time

from blocking import until_sampled

LONG_S = 0.02
BURST = 40


def nap():
    time.sleep(LONG_S)


def tiny():
    pass


def refresh():
    nap()


class Orders:
    async def load(self):
        nap()
        await asyncio.sleep(0.001)
        nap()


class Cache:
    def sweep(self):
        nap()


async def once():
    nap()


def stall():
    if "hang" in sys.argv:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        time.sleep(1e6)
    for seconds in until_sampled(0.3):
        time.sleep(seconds)


async def blocker():
    stall()


async def of_asyncio():
    loop = asyncio.get_running_loop()
    await asyncio.sleep(0)
    loop.call_soon(refresh)
    await asyncio.sleep(0)
    await asyncio.create_task(Orders().load(), name="orders")
    for _ in range(BURST):
        loop.call_soon(tiny)
    await asyncio.sleep(0)
    loop.call_later(0.001, Cache().sweep)
    await asyncio.sleep(0.003)
    await asyncio.sleep(0)
    await asyncio.create_task(once(), name="last")
    await asyncio.create_task(blocker(), name="bad")


def under_asyncio():
    asyncio.run(of_asyncio())


def under_uvloop():
    import uvloop

    uvloop.run(of_asyncio())


def under_trio():
    import trio

    async def load():
        nap()
        await trio.sleep(0.001)
        nap()

    async def steps():
        await trio.lowlevel.checkpoint()
        for work in (load, once):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(work, name=f"task of {work.__name__}")
        for _ in range(BURST):
            await trio.lowlevel.checkpoint()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(blocker, name="bad")

    trio.run(steps)


def under_gevent():
    import gevent

    def load():
        nap()
        gevent.sleep(0.001)
        nap()

    gevent.spawn(refresh).join()
    gevent.spawn(load).join()
    gevent.joinall([gevent.spawn(tiny) for _ in range(BURST)])
    gevent.spawn(stall).join()


def under_watch():
    """Work of a plain thread, as the program names it."""
    import loopcanary

    for name in ("first job", "second job"):
        with loopcanary.watch(name):
            nap()
    for _ in range(BURST):
        with loopcanary.watch("tiny"):
            tiny()
    with loopcanary.watch("third job"):
        nap()
    with loopcanary.watch("bad"):
        stall()


if __name__ == "__main__":
    globals()[f"under_{sys.argv[1]}"]()
