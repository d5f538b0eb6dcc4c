"""anyio's locks on asyncio: which deadlocks and leaks are found, and what is none."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from types import SimpleNamespace

import anyio
import anyio.lowlevel
import pytest
from anyio._backends import _asyncio as backend

from loopcanary.tracers.locks.hooks import LockHooks

from .stories import reported

OF_THE_MODULE = anyio.Lock(), anyio.Lock()
PERMITS_OF_THE_MODULE, OTHER_PERMITS = anyio.Semaphore(1), anyio.Semaphore(1)

LIMITER_OF_THE_MODULE = anyio.CapacityLimiter(1)


class Bank:
    def __init__(self):
        self.accounts, self.ledger = anyio.Lock(), anyio.Lock()


async def moves(first, second):
    async with first:
        await anyio.sleep(0.1)
        async with second:
            pass


async def both(first, second):
    async with anyio.create_task_group() as group:
        group.start_soon(moves, first, second, name="pay")
        group.start_soon(moves, second, first, name="refund")


# ---- tasks that wait for each other -------------------------------------------------------------


async def opposite_order():
    bank = Bank()

    async def pay():
        async with bank.accounts:
            await anyio.sleep(0.1)
            async with bank.ledger:
                pass

    async def refund():
        async with bank.ledger:
            await anyio.sleep(0.1)
            async with bank.accounts:
                pass

    async with anyio.create_task_group() as group:
        group.start_soon(pay, name="pay")
        group.start_soon(refund, name="refund")


async def made_before_the_loop():
    await both(anyio.Lock(), OF_THE_MODULE[0])


async def semaphores():
    await both(anyio.Semaphore(1), anyio.Semaphore(1))


async def a_semaphore_made_before_the_loop():
    await both(PERMITS_OF_THE_MODULE, anyio.Lock())


async def semaphores_made_before_the_loop():
    await both(PERMITS_OF_THE_MODULE, OTHER_PERMITS)


async def semaphores_by_acquire():
    one, other = PERMITS_OF_THE_MODULE, anyio.Semaphore(1)

    async def takes(first, second):
        async with first:
            await anyio.sleep(0.1)
            await second.acquire()

    async with anyio.create_task_group() as group:
        group.start_soon(takes, one, other, name="pay")
        group.start_soon(takes, other, one, name="refund")


async def limiters():
    await both(LIMITER_OF_THE_MODULE, anyio.CapacityLimiter(1))


async def one_of_asyncio():
    await both(anyio.Lock(), asyncio.Lock())


async def by_acquire():
    one, other = anyio.Lock(), anyio.Lock()

    async def takes(first, second):
        await first.acquire()
        await anyio.sleep(0.1)
        await second.acquire()

    async with anyio.create_task_group() as group:
        group.start_soon(takes, one, other, name="pay")
        group.start_soon(takes, other, one, name="refund")


async def a_conditions_lock():
    condition, lock = anyio.Condition(), anyio.Lock()
    await both(condition, lock)


@pytest.mark.parametrize(
    "story",
    [
        opposite_order,
        made_before_the_loop,
        semaphores,
        a_semaphore_made_before_the_loop,
        semaphores_made_before_the_loop,
        semaphores_by_acquire,
        limiters,
        one_of_asyncio,
        by_acquire,
        a_conditions_lock,
    ],
)
def test_a_deadlock_is_found_once(story):
    (issue,) = reported(story)
    assert issue.kind.value == "deadlock"
    assert [wait.task for wait in issue.cycle] == ["pay", "refund"]
    assert all(wait.frames and wait.frames[0].in_app for wait in issue.cycle)
    assert issue.waiting == 1  # main, in the group


def test_a_deadlock_says_who_holds_what():
    (issue,) = reported(opposite_order)
    assert [wait.holds for wait in issue.cycle] == ["Lock 'Bank.accounts'", "Lock 'Bank.ledger'"]


async def a_group_in_the_lock():
    lock = OF_THE_MODULE[1]

    async def child():
        async with lock:
            pass

    async with lock, anyio.create_task_group() as group:
        group.start_soon(child, name="child")


def test_a_group_in_the_lock_that_its_task_needs():
    (issue,) = reported(a_group_in_the_lock)
    waits = {wait.task: (wait.waits_for, wait.holds) for wait in issue.cycle}
    assert waits == {
        "child": ("Lock 'lock'", None),
        "main": ("the task child", "Lock 'lock'"),
    }


async def starts_a_task_that_needs_the_lock():
    lock = anyio.Lock()

    async def child(*, task_status):
        async with lock:
            task_status.started()

    async with anyio.create_task_group() as group, lock:
        await group.start(child, name="child")


def test_a_task_that_cannot_start_is_a_deadlock():
    (issue,) = reported(starts_a_task_that_needs_the_lock)
    assert {wait.task for wait in issue.cycle} == {"main", "child"}


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


async def a_busy_lock():
    lock = anyio.Lock()

    async def works():
        for _ in range(20):
            async with lock:
                await anyio.sleep(1)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(works)


async def a_slow_holder():
    lock = anyio.Lock()

    async def works():
        await lock.acquire()
        try:
            await anyio.sleep(25)
        finally:
            lock.release()

    async with anyio.create_task_group() as group:
        group.start_soon(works)
        group.start_soon(works)


async def a_limiter_that_no_task_holds():
    limiter = anyio.CapacityLimiter(1)
    await limiter.acquire_on_behalf_of("a thread")
    async with limiter:
        pass


async def a_condition_without_news():
    condition = anyio.Condition()

    async def waits():
        async with condition:
            await condition.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(waits)
        group.start_soon(waits)


async def a_permit_that_another_task_gives_back():
    permits = anyio.Semaphore(1)
    await permits.acquire()

    async def gives_back():
        await anyio.sleep(40)
        permits.release()

    async with anyio.create_task_group() as group:
        group.start_soon(gives_back)
        await permits.acquire()


async def a_permit_of_another_task():
    permits, lock = anyio.Semaphore(2), anyio.Lock()

    async def slow():
        await permits.acquire()
        await anyio.sleep(10)
        permits.release()

    async with anyio.create_task_group() as group:
        group.start_soon(slow)
        group.start_soon(moves, permits, lock)
        group.start_soon(moves, lock, permits)


async def a_race():
    lock = anyio.Lock()

    async def wins(scope):
        await anyio.sleep(10)
        scope.cancel()

    async def needs_it():
        async with lock:
            pass

    async with lock, anyio.create_task_group() as group:
        group.start_soon(wins, group.cancel_scope)
        group.start_soon(needs_it)


async def started_by_a_helper():
    lock = anyio.Lock()

    async def helps(task_status):
        await anyio.sleep(10)
        task_status.started()

    async def serves(*, task_status):
        async with anyio.create_task_group() as group:
            group.start_soon(helps, task_status)
            async with lock:
                pass

    async with anyio.create_task_group() as group, lock:
        await group.start(serves)


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
        a_busy_lock,
        a_slow_holder,
        a_limiter_that_no_task_holds,
        a_condition_without_news,
        a_permit_that_another_task_gives_back,
        a_permit_that_its_holder_was_given,
        a_permit_of_another_task,
        a_race,
        started_by_a_helper,
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
    reported(opposite_order)
    assert {kind: dict(vars(kind)) for kind in before} == before


def test_a_version_without_locks_of_its_backend_is_left_alone():
    class Backend:
        """As of anyio 4.4."""

    hooks = LockHooks(print, print)
    hooks.put_in_anyio(Backend)
    hooks.take_out()
