"""Deadlocks and leaks that are found, and what is none."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from loopcanary.kinds.deadlock import DeadlockKind
from loopcanary.tracers.locks import primitives

from .stories import reported


class Bank:
    def __init__(self):
        self.accounts, self.ledger, self.audit = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()

    async def moves(self, first, second):
        async with first:
            await asyncio.sleep(0.1)
            async with second:
                pass


def spawn(coroutine, name):
    return asyncio.create_task(coroutine, name=name)


async def ends(*coroutines):
    """They end, in whatever way."""
    await asyncio.gather(*coroutines, return_exceptions=True)


# ---- tasks that wait for each other -------------------------------------------------------------


async def opposite_order():
    bank = Bank()
    await ends(
        spawn(bank.moves(bank.accounts, bank.ledger), "pay"),
        spawn(bank.moves(bank.ledger, bank.accounts), "refund"),
    )


async def three_in_a_circle():
    bank = Bank()
    locks = (bank.accounts, bank.ledger, bank.audit)
    await ends(*(spawn(bank.moves(locks[n], locks[(n + 1) % 3]), f"step-{n}") for n in range(3)))


async def by_acquire():
    one, other = asyncio.Lock(), asyncio.Lock()

    async def takes(first, second):
        await first.acquire()
        await asyncio.sleep(0.1)
        await second.acquire()

    await ends(spawn(takes(one, other), "a"), spawn(takes(other, one), "b"))


async def nested_block():
    lock = asyncio.Lock()

    async def inner():
        async with lock:
            pass

    async def outer():
        async with lock:
            await inner()

    await spawn(outer(), "outer")


async def through_a_context_manager():
    one, other = asyncio.Lock(), asyncio.Lock()

    @contextlib.asynccontextmanager
    async def opened(lock):
        async with lock:
            yield

    async def works(first, second):
        async with opened(first):
            await asyncio.sleep(0.1)
            async with opened(second):
                pass

    await ends(spawn(works(one, other), "a"), spawn(works(other, one), "b"))


async def in_an_exit_stack():
    one, other = asyncio.Lock(), asyncio.Lock()

    async def works(first, second):
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(first)
            await asyncio.sleep(0.1)
            await stack.enter_async_context(second)

    await ends(spawn(works(one, other), "a"), spawn(works(other, one), "b"))


async def by_the_child(wait):
    """A task waits, in this way, for one that needs its lock."""
    lock = asyncio.Lock()

    async def child():
        async with lock:
            pass

    async def parent():
        async with lock:
            await wait(spawn(child(), "child"))

    await spawn(parent(), "parent")


async def wait_for_it(child):
    await child


async def a_child_needs_the_parents_lock():
    await by_the_child(wait_for_it)


async def a_group_needs_the_parents_lock():
    lock = asyncio.Lock()

    async def child():
        async with lock:
            pass

    async def parent():
        async with lock, asyncio.TaskGroup() as group:
            group.create_task(child(), name="child")

    await spawn(parent(), "parent")


async def gather_inside_the_lock():
    await by_the_child(lambda child: asyncio.gather(child, asyncio.sleep(1)))


async def wait_inside_the_lock():
    await by_the_child(lambda child: asyncio.wait([child]))


async def shields_inside_the_lock():
    await by_the_child(lambda child: asyncio.shield(asyncio.shield(asyncio.gather(child))))


async def gathers_what_it_shields_inside_the_lock():
    await by_the_child(lambda child: asyncio.gather(asyncio.shield(child), asyncio.sleep(1)))


async def takes_what_completes_inside_the_lock():
    async def wait(child):
        for done in asyncio.as_completed([child, spawn(asyncio.sleep(0.1), "other")]):
            await done

    await by_the_child(wait)


async def another_takes_what_completes():
    """Not a deadlock: it waits for other tasks, in the middle of taking those that need its lock."""
    lock = asyncio.Lock()

    async def child():
        async with lock:
            pass

    async def parent():
        async with lock:
            for outer in asyncio.as_completed([spawn(asyncio.sleep(0), "quick"), spawn(child(), "child")]):
                await outer
                for inner in asyncio.as_completed([asyncio.sleep(4), asyncio.sleep(4.1)]):
                    await inner
                break

    await ends(spawn(parent(), "parent"))


async def takes_what_completes_first_of_one():
    await by_the_child(lambda child: asyncio.wait([child], return_when=asyncio.FIRST_COMPLETED))


class Odd(type):
    def __getattribute__(cls, name):
        raise AssertionError(name)


async def beside_an_odd_object():
    odd = Odd("odd", (), {})
    await opposite_order()
    assert odd


async def semaphores():
    one, other = asyncio.Semaphore(1), asyncio.BoundedSemaphore(1)

    async def works(first, second):
        async with first:
            await asyncio.sleep(0.1)
            async with second:
                pass

    await ends(spawn(works(one, other), "a"), spawn(works(other, one), "b"))


async def a_conditions_lock():
    condition, lock = asyncio.Condition(), asyncio.Lock()

    async def tells():
        async with lock:
            await asyncio.sleep(0.1)
            async with condition:
                condition.notify_all()

    async def waits():
        async with condition:
            await asyncio.sleep(0.1)
            async with lock:
                pass

    await ends(spawn(tells(), "tells"), spawn(waits(), "waits"))


async def await_each_other():
    tasks = {}

    async def waits_for(name):
        await asyncio.sleep(0.1)
        await tasks[name]

    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        tasks[name] = spawn(waits_for(other), name)
    await asyncio.sleep(1_000)


async def gathers_itself():
    async def gathers():
        await asyncio.sleep(0.1)
        await asyncio.gather(*tasks)

    tasks = [spawn(gathers(), "gathers"), spawn(asyncio.sleep(1), "other")]
    await asyncio.sleep(1_000)


async def a_group_whose_child_awaits_its_parent():
    async def parent():
        async with asyncio.TaskGroup() as group:
            group.create_task(child(), name="child")

    async def child():
        await asyncio.shield(parents[0])

    parents = [spawn(parent(), "parent")]
    await asyncio.sleep(1_000)


@pytest.mark.parametrize(
    ("story", "tasks", "waits"),
    [
        (await_each_other, ["a", "b", "c"], "the task b"),
        (gathers_itself, ["gathers"], "itself"),
        (a_group_whose_child_awaits_its_parent, ["child", "parent"], "the task parent"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_circle_without_a_lock_is_found_once(story, tasks, waits):
    assert reported(story, 29) == []
    (issue,) = reported(story, 200)
    assert [wait.task for wait in issue.cycle] == tasks
    assert issue.cycle[0].waits_for == waits
    assert issue.duration_ns >= 30e9


async def await_each_other_for_a_while():
    tasks = []

    async def waits_for(index):
        await asyncio.sleep(0.1)
        await asyncio.wait_for(asyncio.shield(tasks[index]), 40)

    tasks += spawn(waits_for(1), "a"), spawn(waits_for(0), "b")
    await ends(*tasks)


def test_a_circle_that_a_timeout_breaks_soon_is_not_reported():
    assert reported(await_each_other_for_a_while, 200) == []


@pytest.mark.parametrize(
    ("story", "tasks"),
    [
        (opposite_order, ["pay", "refund"]),
        (three_in_a_circle, ["step-0", "step-1", "step-2"]),
        (by_acquire, ["a", "b"]),
        (nested_block, ["outer"]),
        (through_a_context_manager, ["a", "b"]),
        (in_an_exit_stack, ["a", "b"]),
        (a_child_needs_the_parents_lock, ["child", "parent"]),
        (a_group_needs_the_parents_lock, ["child", "parent"]),
        (gather_inside_the_lock, ["child", "parent"]),
        (wait_inside_the_lock, ["child", "parent"]),
        (shields_inside_the_lock, ["child", "parent"]),
        (gathers_what_it_shields_inside_the_lock, ["child", "parent"]),
        (takes_what_completes_inside_the_lock, ["child", "parent"]),
        (takes_what_completes_first_of_one, ["child", "parent"]),
        (semaphores, ["a", "b"]),
        (beside_an_odd_object, ["pay", "refund"]),
        (a_conditions_lock, ["tells", "waits"]),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_deadlock_is_found_once(story, tasks):
    (issue,) = reported(story)
    assert issue.kind.value == "deadlock"
    assert [wait.task for wait in issue.cycle] == tasks
    assert all(wait.frames and wait.frames[0].in_app for wait in issue.cycle)


def test_a_deadlock_says_who_holds_what():
    (issue,) = reported(opposite_order)
    first, second = issue.cycle
    assert (first.holds, first.waits_for) == ("Lock 'Bank.accounts'", "Lock 'Bank.ledger'")
    assert (second.holds, second.waits_for) == ("Lock 'Bank.ledger'", "Lock 'Bank.accounts'")
    assert first.frames[0].qualname == "Bank.moves"


@pytest.mark.parametrize(
    ("story", "advice"),
    [
        (opposite_order, "Take locks in the same order"),
        (nested_block, "It is not reentrant"),
        (a_child_needs_the_parents_lock, "Release the lock before waiting for the task"),
    ],
)
def test_the_advice_fits_the_circle(story, advice):
    (issue,) = reported(story)
    assert DeadlockKind().advice(issue).startswith(advice)


def test_a_stopped_tracer_sees_nothing_until_it_is_started_again():
    tracers = []

    async def in_turn():
        for step in (tracers[0].stop, tracers[0].start):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(opposite_order(), 20)
            step()
        await opposite_order()

    found = reported(in_turn, 120, started=tracers.append)
    assert [issue.kind.value for issue in found] == ["deadlock", "deadlock"], "the first and the third"


# ---- locks that are not released ----------------------------------------------------------------


async def raises():
    lock = asyncio.Lock()

    async def fails():
        await lock.acquire()
        raise ValueError

    async def reads():
        async with lock:
            pass

    await ends(spawn(fails(), "fails"))
    await ends(spawn(reads(), "reads"), spawn(reads(), "reads too"))


async def returns_early():
    lock = asyncio.Lock()

    async def first():
        await lock.acquire()

    await spawn(first(), "first")
    async with lock:
        pass


async def is_cancelled():
    lock = asyncio.Lock()

    async def works():
        await lock.acquire()
        await asyncio.sleep(100)
        lock.release()

    task = spawn(works(), "works")
    await asyncio.sleep(0.1)
    task.cancel()
    async with lock:
        pass


async def forgets_in_a_loop():
    lock = asyncio.Lock()

    async def works():
        for number in (1, 0, 1):
            await lock.acquire()
            if not number:
                continue
            lock.release()

    await spawn(works(), "works")


async def forgets_after_news():
    """The condition's own acquisitions are noted no more, and what the task acquired itself is."""
    condition = asyncio.Condition()

    async def waits():
        await condition.acquire()
        await condition.wait()

    waiting = spawn(waits(), "waits")
    await asyncio.sleep(0.1)
    async with condition:
        condition.notify()
    await waiting
    async with condition:
        pass


async def forgets_after_another_had_news():
    condition = asyncio.Condition()

    async def waits():
        async with condition:
            await condition.wait()
        await asyncio.sleep(100)

    async def fails():
        await condition.acquire()

    waiting = spawn(waits(), "waits")
    await asyncio.sleep(0.1)
    async with condition:
        condition.notify()
    await asyncio.sleep(0.1)
    await spawn(fails(), "fails")
    async with condition:
        pass
    await waiting


async def loses_all_permits():
    permits = asyncio.Semaphore(2)

    async def fails():
        await permits.acquire()
        raise ValueError

    async def waits():
        async with permits:
            pass

    await ends(spawn(fails(), "one"), spawn(fails(), "two"))
    await spawn(waits(), "waits")


@pytest.mark.parametrize(
    ("story", "holder", "has_ended"),
    [
        (raises, "fails", True),
        (returns_early, "first", True),
        (is_cancelled, "works", True),
        (forgets_in_a_loop, "works", False),
        (loses_all_permits, "two", True),
        (forgets_after_news, "waits", True),
        (forgets_after_another_had_news, "fails", True),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_lock_that_is_not_released_is_found_once(story, holder, has_ended):
    (issue,) = reported(story)
    assert issue.kind.value == "lock-leak"
    assert (issue.acquired_by, issue.has_ended) == (holder, has_ended)
    assert issue.acquired[0].in_app
    assert issue.waiting == len(issue.waiters) > 0


def test_a_leak_is_found_after_eight_seconds():
    assert reported(raises, 7) == []
    (issue,) = reported(raises, 10)
    assert 7e9 <= issue.duration_ns <= 9e9
    assert [wait.task for wait in issue.waiters] == ["reads", "reads too"]


# ---- what is none -------------------------------------------------------------------------------


async def a_busy_lock():
    lock = asyncio.Lock()

    async def works():
        for _ in range(20):
            async with lock:
                await asyncio.sleep(1)

    await ends(*(works() for _ in range(5)))


async def a_slow_holder():
    lock = asyncio.Lock()

    async def works():
        async with lock:
            await asyncio.sleep(50)

    await ends(works(), works())


async def a_slow_holder_by_acquire():
    lock = asyncio.Lock()

    async def works():
        await lock.acquire()
        try:
            await asyncio.sleep(50)
        finally:
            lock.release()

    await ends(works(), works())


async def a_consumer():
    queue = asyncio.Queue()

    async def puts():
        await asyncio.sleep(50)
        await queue.put(1)

    await ends(queue.get(), puts(), asyncio.Event().wait())


async def a_condition_without_news():
    condition = asyncio.Condition()

    async def waits():
        async with condition:
            await condition.wait()

    await ends(waits(), waits())


async def a_rate_limiter():
    permits = asyncio.Semaphore(1)

    async def asks():
        await permits.acquire()
        asyncio.get_running_loop().call_later(40, permits.release)

    await ends(asks(), asks())


async def a_bounded_spawn():
    permits = asyncio.Semaphore(2)

    async def job():
        await asyncio.sleep(45)

    for _ in range(4):
        await permits.acquire()
        asyncio.create_task(job()).add_done_callback(lambda _: permits.release())


async def a_permit_of_another_task():
    permits, lock = asyncio.Semaphore(2), asyncio.Lock()

    async def slow():
        await permits.acquire()
        await asyncio.sleep(10)
        permits.release()

    async def moves(first, second):
        async with first:
            await asyncio.sleep(0.1)
            async with second:
                pass

    await ends(slow(), moves(permits, lock), moves(lock, permits))


async def a_gate():
    """A lock that one task acquires and another one releases."""
    gate = asyncio.Lock()
    await gate.acquire()

    async def opens():
        await asyncio.sleep(50)
        gate.release()

    opening = asyncio.create_task(opens())
    await gate.acquire()
    await opening


class Gate:
    def __init__(self):
        self.lock = asyncio.Lock()

    async def close(self):
        await self.lock.acquire()

    def opened(self):
        self.lock.release()

    async def open(self):
        await asyncio.sleep(50)
        self.opened()

    async def passes(self):
        async with self.lock:
            pass


async def a_gate_that_the_task_closed_which_awaits_all():
    gate = Gate()
    await gate.close()
    await asyncio.gather(gate.open(), gate.passes())


async def a_gate_that_a_task_closed_which_has_ended():
    gate = Gate()
    await asyncio.create_task(gate.close())
    await asyncio.gather(gate.open(), gate.passes())


async def acquired_within_a_time():
    lock = asyncio.Lock()

    async def works():
        await asyncio.wait_for(lock.acquire(), 600)  # on 3.11 a task of its own acquires, and ends
        try:
            await asyncio.sleep(50)
        finally:
            lock.release()

    await asyncio.gather(works(), works())


async def a_lock_without_waiters():
    lock = asyncio.Lock()

    async def takes():
        await lock.acquire()

    await asyncio.create_task(takes())


async def short_waits():
    lock = asyncio.Lock()

    async def works():
        for _ in range(100):
            async with lock:
                await asyncio.sleep(0.01)

    await ends(*(works() for _ in range(10)))


@pytest.mark.parametrize(
    "story",
    [
        a_busy_lock,
        a_slow_holder,
        a_slow_holder_by_acquire,
        a_consumer,
        a_condition_without_news,
        a_rate_limiter,
        a_bounded_spawn,
        a_permit_of_another_task,
        a_gate,
        a_gate_that_the_task_closed_which_awaits_all,
        a_gate_that_a_task_closed_which_has_ended,
        acquired_within_a_time,
        a_lock_without_waiters,
        short_waits,
        another_takes_what_completes,
    ],
)
def test_what_gets_on_is_not_reported(story):
    assert reported(story) == []


# ---- what the program sees ----------------------------------------------------------------------


class Counting(asyncio.Lock):
    acquired = 0

    async def acquire(self):
        self.acquired += 1
        return await super().acquire()


async def its_own_lock():
    lock = Counting()
    async with lock:
        pass
    assert lock.acquired == 1
    assert not lock.locked()


def test_a_lock_of_its_own_is_called():
    assert reported(its_own_lock) == []


def test_nothing_is_left_in_asyncio():
    before = {kind: dict(vars(kind)) for kind in (asyncio.Lock, asyncio.Semaphore)}
    reported(opposite_order)
    assert {kind: dict(vars(kind)) for kind in before} == before
    assert asyncio.Lock.acquire.__code__ in primitives.ACQUIRES
