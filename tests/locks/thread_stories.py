"""Programs in which tasks and threads wait for each other, and some that look like it. Run by test_threads as
`thread_stories.py FAMILY`. What is none ends with a circle of tasks, found after the looks at all others.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
from functools import partial

LONG_S = 600
LOOKED_S = 9
"""By then tasks that wait for a lock have been looked at twice."""
pool = concurrent.futures.ThreadPoolExecutor(thread_name_prefix="pool")
other_pool = concurrent.futures.ThreadPoolExecutor(thread_name_prefix="other")


def named(name, function):
    """In this thread, which has a name of the story's meanwhile."""
    threading.current_thread().name = name
    return function()


class Story:
    """A task that holds a lock, and what asks the loop for a task that needs it."""

    def __init__(self, name):
        self.name, self.lock, self.loop = name, asyncio.Lock(), asyncio.get_running_loop()

    async def needs(self):
        asyncio.current_task().set_name(f"{self.name} needs")
        async with self.lock:
            pass

    def asks(self, **kwargs):
        named(
            f"{self.name} asks",
            lambda: asyncio.run_coroutine_threadsafe(self.needs(), self.loop).result(**kwargs),
        )

    def start(self, wait):
        return asyncio.create_task(self._holds(wait), name=f"{self.name} holds")

    async def _holds(self, wait):
        async with self.lock:
            await wait(self)


# ---- circles --------------------------------------------------------------------------------------


async def default_pool(story):
    await asyncio.to_thread(story.asks)


async def own_pool(story):
    await asyncio.shield(story.loop.run_in_executor(pool, story.asks))


async def wrapped(story):
    await asyncio.gather(asyncio.wrap_future(pool.submit(story.asks)), asyncio.sleep(0))


async def with_a_timeout(story):
    await asyncio.wait_for(story.loop.run_in_executor(pool, story.asks), LONG_S)


async def joins(story):
    thread = threading.Thread(target=story.asks, daemon=True)

    def starts():
        thread.start()
        named(f"{story.name} joins", thread.join)

    await story.loop.run_in_executor(pool, starts)


async def of_another_pool(story):
    await story.loop.run_in_executor(
        pool, named, f"{story.name} submits", lambda: other_pool.submit(story.asks).result()
    )


CIRCLES = (default_pool, own_pool, wrapped, with_a_timeout, joins, of_another_pool)


# ---- what is none ---------------------------------------------------------------------------------


async def result_with_a_timeout(story):
    await story.loop.run_in_executor(pool, partial(story.asks, timeout=LONG_S))


async def join_with_a_timeout(story):
    thread = threading.Thread(target=story.asks, daemon=True)
    thread.start()
    await story.loop.run_in_executor(pool, thread.join, LONG_S)


async def busy_thread(story):
    asyncio.run_coroutine_threadsafe(story.needs(), story.loop)
    await story.loop.run_in_executor(pool, threading.Event().wait)


async def waits_for_a_task_that_sleeps(story):
    asyncio.run_coroutine_threadsafe(story.needs(), story.loop)
    sleeps = asyncio.sleep(LONG_S)
    await story.loop.run_in_executor(
        pool, lambda: asyncio.run_coroutine_threadsafe(sleeps, story.loop).result()
    )


async def another_thread_asks(story):
    """It works for nothing that the holder waits for."""
    threading.Thread(target=story.asks, daemon=True).start()
    await asyncio.sleep(LONG_S)


async def asks_and_goes_on(story):
    """The thread that the holder waits for has asked, and does something else."""

    def works():
        asyncio.run_coroutine_threadsafe(story.needs(), story.loop)
        threading.Event().wait()

    await story.loop.run_in_executor(pool, works)


async def a_task_may_cancel(story):
    asked = []

    def asks():
        asked.append(asyncio.run_coroutine_threadsafe(story.needs(), story.loop))
        asked[0].result()

    async def gives_up():
        await asyncio.sleep(LONG_S)
        asked[0].cancel()

    giving_up = asyncio.create_task(gives_up())
    await story.loop.run_in_executor(pool, asks)
    await giving_up


CONTROLS = (
    a_task_may_cancel,
    result_with_a_timeout,
    join_with_a_timeout,
    busy_thread,
    waits_for_a_task_that_sleeps,
    another_thread_asks,
    asks_and_goes_on,
)


# ---- anyio and trio -------------------------------------------------------------------------------


async def of_anyio(backend, *, is_long):
    """With `is_long` the threads wait for tasks that sleep."""
    import anyio
    import anyio.from_thread

    lock, other = anyio.Lock(), anyio.Lock()

    async def needs():
        await (anyio.sleep(LONG_S) if is_long else lock.acquire())

    async def needs_other():
        await (anyio.sleep(LONG_S) if is_long else other.acquire())

    async def holds(which, ask, what):
        async with which:
            await anyio.to_thread.run_sync(partial(named, "asks", partial(ask, what)))

    async def takes(which):
        async with which:
            pass

    async with anyio.from_thread.BlockingPortal() as portal, anyio.create_task_group() as group:
        group.start_soon(holds, lock, portal.call, needs, name="by portal")
        if backend == "asyncio":
            group.start_soon(holds, other, anyio.from_thread.run, needs_other, name="by run")
        await anyio.sleep(0.1)
        for each in (lock, other) if is_long else ():
            group.start_soon(takes, each)
        if is_long:
            start_last(anyio, group)


def start_last(library, group):
    one, other = library.Lock(), library.Lock()

    async def takes(first, second):
        async with first:
            await library.sleep(LOOKED_S)
            async with second:
                pass

    group.start_soon(partial(takes, one, other), name="last a")
    group.start_soon(partial(takes, other, one), name="last b")


def trio_itself(*, is_long):
    import trio

    async def main():
        lock, token = trio.Lock(), trio.lowlevel.current_trio_token()

        async def needs():
            if is_long:
                await trio.sleep(LONG_S)
            await lock.acquire()

        async def takes():
            async with lock:
                pass

        async def holds():
            async with lock:
                await trio.to_thread.run_sync(
                    named, "asks", partial(trio.from_thread.run, needs, trio_token=token)
                )

        async def sleeps_in_the_task_itself():
            async with trio.Lock():
                await trio.to_thread.run_sync(trio.from_thread.run, trio.sleep, LONG_S)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(holds, name="holds")
            nursery.start_soon(sleeps_in_the_task_itself)
            if is_long:
                await trio.sleep(0.1)
                nursery.start_soon(takes)
                start_last(trio, nursery)

    trio.run(main)


# ---- the program ----------------------------------------------------------------------------------


class Group:
    def __init__(self):
        self.running = []

    def start_soon(self, function, name):
        self.running.append(asyncio.create_task(function(), name=name))


async def of_asyncio(stories):
    group = Group()
    group.running += (Story(wait.__name__).start(wait) for wait in stories)
    if stories is CONTROLS:
        start_last(asyncio, group)
    await asyncio.gather(*group.running)


def main(family):
    kind, _, what = family.partition("-")
    is_long = what == "controls"
    if kind in ("asyncio", "uvloop"):
        runner = __import__(kind)
        runner.run(of_asyncio(CONTROLS if is_long else CIRCLES))
    elif kind == "trio":
        trio_itself(is_long=is_long)
    else:
        import anyio

        backend = kind.removeprefix("anyio_on_")
        anyio.run(partial(of_anyio, backend, is_long=is_long), backend=backend)


if __name__ == "__main__":
    main(sys.argv[1])
