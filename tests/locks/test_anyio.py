"""anyio's locks on asyncio: which deadlocks and leaks are found, and what is none."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from functools import partial
from types import SimpleNamespace

import anyio
import anyio.lowlevel
import pytest
from anyio._backends import _asyncio as backend

from loopcanary.tracers.locks.hooks import LockHooks

from .group_stories import CIRCLES, HANDLES, PARENTS, QUIET, both, moves, nested_in_a_limiter, opposite_order
from .stories import reported, told_with

OF_THE_MODULE = anyio.Lock(), anyio.Lock()
PERMITS_OF_THE_MODULE, OTHER_PERMITS = anyio.Semaphore(1), anyio.Semaphore(1)

LIMITER_OF_THE_MODULE = anyio.CapacityLimiter(1)


# ---- tasks that wait for each other -------------------------------------------------------------


async def made_before_the_loop():
    await both(anyio, anyio.Lock(), OF_THE_MODULE[0])


async def a_semaphore_made_before_the_loop():
    await both(anyio, PERMITS_OF_THE_MODULE, anyio.Lock())


async def semaphores_made_before_the_loop():
    await both(anyio, PERMITS_OF_THE_MODULE, OTHER_PERMITS)


async def semaphores_by_acquire():
    one, other = PERMITS_OF_THE_MODULE, anyio.Semaphore(1)

    async def takes(first, second):
        async with first:
            await anyio.sleep(0.1)
            await second.acquire()

    async with anyio.create_task_group() as group:
        group.start_soon(takes, one, other, name="pay")
        group.start_soon(takes, other, one, name="refund")


async def a_limiter_made_before_the_loop():
    await both(anyio, LIMITER_OF_THE_MODULE, anyio.CapacityLimiter(1))


async def one_of_asyncio():
    await both(anyio, anyio.Lock(), asyncio.Lock())


@pytest.mark.parametrize(
    "story",
    [
        *told_with(anyio, CIRCLES),
        made_before_the_loop,
        a_semaphore_made_before_the_loop,
        semaphores_made_before_the_loop,
        semaphores_by_acquire,
        a_limiter_made_before_the_loop,
        one_of_asyncio,
    ],
)
def test_a_deadlock_is_found_once(story):
    (issue,) = reported(story)
    assert issue.kind.value == "deadlock"
    assert [wait.task for wait in issue.cycle] == ["pay", "refund"]
    assert all(wait.frames and wait.frames[0].in_app for wait in issue.cycle)
    assert issue.waiting == 1  # main, in the group


def test_a_deadlock_says_who_holds_what():
    (issue,) = reported(partial(opposite_order, anyio))
    assert [wait.holds for wait in issue.cycle] == ["Lock 'Bank.accounts'", "Lock 'Bank.ledger'"]


async def a_group_in_a_lock_of_the_module():
    async with OF_THE_MODULE[1], anyio.create_task_group() as group:
        group.start_soon(moves, anyio, OF_THE_MODULE[1], anyio.Lock(), name="child")


@pytest.mark.parametrize("story", [*told_with(anyio, (*PARENTS, *HANDLES)), a_group_in_a_lock_of_the_module])
def test_a_group_that_needs_the_lock_around_it(story):
    (issue,) = reported(story)
    waits = {wait.task: (wait.waits_for, wait.holds) for wait in issue.cycle}
    assert waits.keys() == {"main", "child"}
    assert waits["main"][0] == "the task child"
    assert waits["child"][0] == waits["main"][1]


def test_of_several_circles_the_same_is_reported():
    (issue,) = reported(partial(nested_in_a_limiter, anyio))
    assert [wait.task for wait in issue.cycle] == [f"works {depth}" for depth in range(4)]


# ---- locks that are not released ----------------------------------------------------------------


async def forgets():
    lock = anyio.Lock()

    async def fills():
        await lock.acquire()

    await asyncio.create_task(fills(), name="fills")
    async with lock:
        pass


async def forgets_at_once():
    lock = anyio.Lock()

    async def fills():
        lock.acquire_nowait()

    await asyncio.create_task(fills(), name="fills")
    async with lock:
        pass


async def loses_its_permit():
    permits = anyio.Semaphore(1)

    async def fills():
        await permits.acquire()

    await asyncio.create_task(fills(), name="fills")
    async with permits:
        pass


async def forgets_beside_a_condition():
    """A task waits for news in the block of the lock: it has given the lock back."""
    lock = anyio.Lock()
    condition = anyio.Condition(lock)

    async def waits():
        async with lock:
            await condition.wait()

    async def fills():
        await lock.acquire()

    waiting = asyncio.create_task(waits(), name="waits")
    await anyio.sleep(0.1)
    await asyncio.create_task(fills(), name="fills")
    async with lock:
        pass
    await waiting


async def forgets_after_another_had_news():
    condition = anyio.Condition()

    async def waits():
        async with condition:
            await condition.wait()
        await anyio.sleep(100)

    async def fills():
        await condition.acquire()

    waiting = asyncio.create_task(waits(), name="waits")
    await anyio.sleep(0.1)
    async with condition:
        condition.notify()
    await anyio.sleep(0.1)
    await asyncio.create_task(fills(), name="fills")
    async with condition:
        pass
    await waiting


@pytest.mark.parametrize(
    "story",
    [forgets, forgets_at_once, loses_its_permit, forgets_beside_a_condition, forgets_after_another_had_news],
)
def test_a_lock_that_is_not_released_is_found_once(story):
    (issue,) = reported(story)
    assert (issue.kind.value, issue.acquired_by, issue.has_ended) == ("lock-leak", "fills", True)
    assert issue.acquired[0].qualname.endswith("fills")
    assert issue.waiting == len(issue.waiters) == 1


# ---- what is none -------------------------------------------------------------------------------


async def a_permit_that_another_task_gives_back():
    permits = anyio.Semaphore(1)
    await permits.acquire()

    async def gives_back():
        await anyio.sleep(40)
        permits.release()

    async with anyio.create_task_group() as group:
        group.start_soon(gives_back)
        await permits.acquire()


async def waits_again_and_again():
    """A condition gives its lock back and takes it: that is no acquisition of the task's."""
    condition = anyio.Condition()

    async def waits():
        async with condition:
            await condition.wait()

    async def holds():
        async with condition._lock:
            await anyio.sleep(20)

    waiting = asyncio.create_task(waits())
    await anyio.sleep(0.1)
    async with condition:
        condition.notify()
    await waiting
    await asyncio.gather(holds(), holds())


async def a_permit_that_its_holder_was_given():
    """A block beside it does not say that the holder has none."""
    inner = SimpleNamespace(permits=anyio.Semaphore(2))
    outer = SimpleNamespace(inner=inner)

    async def keeps(outer):
        await outer.inner.permits.acquire()
        await anyio.sleep(50)
        outer.inner.permits.release()
        outer.inner.permits.release()

    async def enters(outer):
        async with outer.inner.permits:
            await anyio.sleep(0.1)

    async def hands_over(outer):
        await outer.inner.permits.acquire()

    keeper = asyncio.create_task(keeps(outer))
    await anyio.sleep(0.1)
    await asyncio.create_task(enters(outer))
    await asyncio.create_task(hands_over(outer))
    await asyncio.create_task(enters(outer))
    await keeper


@pytest.mark.parametrize(
    "story",
    [
        *told_with(anyio, QUIET),
        a_permit_that_another_task_gives_back,
        a_permit_that_its_holder_was_given,
        waits_again_and_again,
    ],
)
def test_what_gets_on_is_not_reported(story):
    assert reported(story) == []


# ---- what the program sees ----------------------------------------------------------------------


class Counting(backend.Lock):
    acquired = 0

    async def acquire(self):
        self.acquired += 1
        await super().acquire()


async def a_lock_of_its_own():
    lock = Counting()
    async with lock:
        assert lock.statistics().locked
    assert (lock.acquired, lock.locked()) == (1, False)


async def refused():
    lock = anyio.Lock()
    async with lock:
        with pytest.raises(RuntimeError, match="already held"):
            await lock.acquire()
        with pytest.raises(RuntimeError, match="already held"):
            lock.acquire_nowait()
    with pytest.raises(RuntimeError, match="not holding"):
        lock.release()


async def entered_by_name():
    async with anyio.Semaphore(2) as permits:
        assert permits.value == 1
    async with anyio.Lock() as nothing, anyio.CapacityLimiter(1) as none:
        assert (nothing, none) == (None, None)
    async with AsyncExitStack() as stack:
        assert await stack.enter_async_context(permits) is permits


async def taken_without_a_loop():
    permits = anyio.Semaphore(3)
    for call in (permits.acquire_nowait, permits.release):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert permits.value == 3


@pytest.mark.parametrize("story", [a_lock_of_its_own, refused, entered_by_name, taken_without_a_loop])
def test_the_locks_do_what_they_did(story):
    finished = []

    async def whole():
        await story()
        finished.append(story)

    assert reported(whole) == []
    assert finished == [story]


def test_nothing_is_left_in_anyio():
    before = {kind: dict(vars(kind)) for kind in (backend.Lock, backend.Semaphore)}
    reported(partial(opposite_order, anyio))
    assert {kind: dict(vars(kind)) for kind in before} == before


def test_a_version_without_locks_of_its_backend_is_left_alone():
    class Backend:
        """As of anyio 4.4."""

    hooks = LockHooks(print, print, print)
    hooks.put_in_anyio(Backend)
    hooks.take_out()
