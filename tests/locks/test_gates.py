"""Locks that something else than a task releases; what is asked of the program, and what is kept of it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
import weakref
from types import SimpleNamespace

import anyio
import pytest
from anyio._backends import _asyncio as backend

from loopcanary.tracers.locks.asyncio_tasks import AsyncioTasks
from loopcanary.tracers.locks.hooks import LockHooks
from loopcanary.tracers.locks.tasks import TaskView, reached
from loopcanary.tracers.locks.threads import add_threads

from .stories import reported


async def ends(*coroutines):
    await asyncio.gather(*coroutines)


async def passes(gate):
    async with gate:
        pass


async def a_timer_opens_it():
    gate = asyncio.Lock()
    await gate.acquire()
    asyncio.get_running_loop().call_later(50, gate.release)
    await asyncio.create_task(passes(gate))


async def a_future_opens_it():
    gate, loop = asyncio.Lock(), asyncio.get_running_loop()
    await gate.acquire()
    answer = loop.create_future()
    answer.add_done_callback(lambda _: gate.release())
    loop.call_later(50, answer.set_result, None)
    await asyncio.create_task(passes(gate))


async def a_future_opens_it_when_the_task_has_ended():
    gate, loop = asyncio.Lock(), asyncio.get_running_loop()
    answer = loop.create_future()

    async def closes():
        await gate.acquire()
        answer.add_done_callback(lambda _: gate.release())

    await asyncio.create_task(closes())
    loop.call_later(50, answer.set_result, None)
    await passes(gate)


class Opener(threading.Thread):
    def __init__(self, gate):
        super().__init__()
        self.gate, self.loop = gate, asyncio.get_running_loop()

    def run(self):
        self.loop.call_soon_threadsafe(self.gate.release)


async def a_thread_may_open_it():
    gate = asyncio.Lock()
    await gate.acquire()
    Opener(gate)
    await asyncio.create_task(passes(gate))


def opens_later(gate):
    return gate.release


async def a_function_of_the_module_gives_it_away():
    gate = asyncio.Lock()
    await gate.acquire()
    opens_later(gate)
    await asyncio.create_task(passes(gate))


@pytest.mark.parametrize(
    "story",
    [
        a_timer_opens_it,
        a_future_opens_it,
        a_future_opens_it_when_the_task_has_ended,
        a_thread_may_open_it,
        a_function_of_the_module_gives_it_away,
    ],
)
def test_a_gate_is_neither_deadlock_nor_leak(story):
    assert reported(story, 40) == []


async def releases_itself():
    lock = asyncio.Lock()
    await lock.acquire()
    try:
        await asyncio.create_task(passes(lock), name="child")
    finally:
        lock.release()


async def forgets_it():
    lock = asyncio.Lock()
    await lock.acquire()
    await asyncio.create_task(passes(lock), name="child")


@pytest.mark.parametrize("story", [releases_itself, forgets_it])
def test_what_gives_its_release_to_none_is_a_deadlock(story):
    (issue,) = reported(story, 40)
    assert {wait.task for wait in issue.cycle} == {"main", "child"}


@pytest.mark.parametrize("library", ["asyncio", "uvloop"])
def test_timers_of_the_loop_are_seen(library):
    runner = pytest.importorskip(library)

    async def asked():
        loop, permits = asyncio.get_running_loop(), asyncio.Semaphore(1)
        before = AsyncioTasks(loop).may_release(permits, ())
        timer = loop.call_later(600, permits.release)
        after = AsyncioTasks(loop).may_release(permits, ())
        timer.cancel()
        return before, after

    assert runner.run(asked()) == (False, True)


class Proxy:
    """As those of web frameworks, outside of a request."""

    @property
    def __dict__(self):
        raise RuntimeError("no request")

    @property
    def __class__(self):
        raise RuntimeError("no request")

    async def __aenter__(self):
        pass

    async def __aexit__(self, *error):
        pass


async def with_proxies():
    first, second = asyncio.Lock(), asyncio.Lock()

    async def moves(request, lock, other):
        async with request, lock:
            await asyncio.sleep(0.1)
            async with other:
                pass

    await ends(moves(Proxy(), first, second), moves(Proxy(), second, first))


def test_proxies_are_asked_nothing():
    assert len(reported(with_proxies)) == 1


def test_a_thread_that_has_gone_on_keeps_nothing_alive():
    """A look is made in steps, and the threads go on between them."""
    waits_for, witnesses = concurrent.futures.Future(), []

    class Witness:
        pass

    def works():
        witness = Witness()
        witnesses.append(weakref.ref(witness))
        waits_for.result()

    threads = [threading.Thread(target=works) for _ in range(3)]
    for thread in threads:
        thread.start()
    while sum(is_waiting(thread) for thread in threads) < len(threads):
        pass
    look = add_threads({})
    next(look)
    waits_for.set_result(None)
    for thread in threads:
        thread.join()
    assert [witness() for witness in witnesses] == [None] * 3
    look.close()


def is_waiting(thread):
    frame = sys._current_frames().get(thread.ident)
    return frame is not None and frame.f_code is threading.Condition.wait.__code__


def view(*, lock=None, tasks=()):
    return TaskView(None, "", None, None, lock, tasks, (), ())


def test_all_that_a_circle_rests_on_is_looked_at_again():
    views = {1: view(lock="permits"), 2: view(lock="lock"), 3: view(lock="lock"), 4: view()}
    holders = {"permits": [2, 3], "lock": [1]}
    assert reached(views, lambda lock: holders[lock], [1, 2]) == {1, 2, 3}


@pytest.mark.parametrize("kind", ["Lock", "Semaphore", "CapacityLimiter"])
def test_an_anyio_that_is_made_differently_is_left_alone(kind):
    class Other:
        def __init__(self, *_):
            pass

    module = SimpleNamespace(**{name: getattr(backend, name) for name in dir(backend)})
    setattr(module, kind, Other)
    hooks = LockHooks(print, print, print)
    hooks.put_in()
    try:
        hooks.put_in_anyio(module)
        assert "acquire" not in vars(Other)
        assert backend.Lock.acquire.__module__ == backend.__name__
    finally:
        hooks.take_out()


def test_a_block_is_left_by_whatever_names():
    async def leaves():
        for lock in (asyncio.Lock(), anyio.Lock()):
            await lock.__aenter__()
            await lock.__aexit__(None, None, None)
            await lock.__aenter__()
            names = (
                ("exc_type", "exc", "tb") if type(lock) is asyncio.Lock else ("exc_type", "exc_val", "exc_tb")
            )
            await lock.__aexit__(**dict.fromkeys(names))
            assert not lock.locked()
        done.append(True)

    done = []
    assert reported(leaves) == []
    assert done == [True]
