"""trio's locks: which deadlocks are found, and what is none. In virtual time."""

from __future__ import annotations

import gc
import weakref

import anyio
import pytest
import trio
import trio.testing

from loopcanary.probes import ImportWatch
from loopcanary.tracers.locks.tracer import LockTracer

from .stories import Desk

HERE = __file__
LEFT = []


class JumpClock(trio.abc.Clock):
    """Time passes only while nothing can run."""

    def __init__(self):
        self.now = 0.0

    def start_clock(self):
        pass

    def current_time(self):
        return self.now

    def deadline_to_sleep_time(self, deadline):
        self.now = max(self.now, deadline)
        return 0


def reported(story, seconds=60, clock=JumpClock):
    """The issues of a story that has this long."""
    desk = Desk()
    tracer = LockTracer(lambda file: file == HERE, ImportWatch, now_ns=lambda: int(trio.current_time() * 1e9))
    tracer.init(desk)
    tracer.start()

    async def main():
        with trio.move_on_after(seconds):
            await story()

    try:
        trio.run(main, clock=clock())
    finally:
        tracer.stop()
    assert desk.errors == []
    return desk.issues


class Bank:
    def __init__(self):
        self.accounts, self.ledger = trio.Lock(), trio.Lock()


async def moves(first, second):
    async with first:
        await trio.sleep(0.1)
        async with second:
            pass


async def both(first, second):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(moves, first, second, name="pay")
        nursery.start_soon(moves, second, first, name="refund")


# ---- tasks that wait for each other -------------------------------------------------------------


async def opposite_order():
    bank = Bank()

    async def pay():
        async with bank.accounts:
            await trio.sleep(0.1)
            async with bank.ledger:
                pass

    async def refund():
        async with bank.ledger:
            await trio.sleep(0.1)
            async with bank.accounts:
                pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pay, name="pay")
        nursery.start_soon(refund, name="refund")


async def fair_locks():
    await both(trio.StrictFIFOLock(), trio.Lock())


async def semaphores():
    await both(trio.Semaphore(1), trio.Semaphore(1))


async def limiters():
    await both(trio.CapacityLimiter(1), trio.CapacityLimiter(1))


async def by_acquire():
    one, other = trio.Lock(), trio.Semaphore(1)

    async def pay():
        await one.acquire()
        await trio.sleep(0.1)
        await other.acquire()

    async def refund():
        async with other:
            await trio.sleep(0.1)
            await one.acquire()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pay, name="pay")
        nursery.start_soon(refund, name="refund")


async def a_conditions_lock():
    await both(trio.Condition(), trio.Lock())


async def after_a_condition():
    """Woken, one waits for the lock of the condition again."""
    condition, lock = trio.Condition(), trio.Lock()

    async def pay():
        async with condition, lock:
            await condition.wait()

    async def refund():
        await trio.sleep(0.1)
        async with condition:
            condition.notify()
            async with lock:
                pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pay, name="pay")
        nursery.start_soon(refund, name="refund")


async def through_anyio():
    await both(anyio.Lock(), anyio.Semaphore(1))


async def limiters_of_anyio():
    await both(anyio.CapacityLimiter(1), trio.CapacityLimiter(1))


@pytest.mark.parametrize(
    "story",
    [
        opposite_order,
        fair_locks,
        semaphores,
        limiters,
        by_acquire,
        a_conditions_lock,
        after_a_condition,
        through_anyio,
        limiters_of_anyio,
    ],
)
def test_a_deadlock_is_found_once(story):
    (issue,) = reported(story)
    assert (issue.kind.value, issue.loop) == ("deadlock", "trio")
    assert [wait.task for wait in issue.cycle] == ["pay", "refund"]
    assert all(wait.frames and wait.frames[0].in_app for wait in issue.cycle)
    assert issue.waiting == 1  # main, in the nursery
    assert 3e9 <= issue.duration_ns <= 5e9


def test_a_deadlock_says_who_holds_what():
    (issue,) = reported(opposite_order)
    first, second = issue.cycle
    assert (first.holds, first.waits_for) == ("Lock 'Bank.accounts'", "Lock 'Bank.ledger'")
    assert (second.holds, second.waits_for) == ("Lock 'Bank.ledger'", "Lock 'Bank.accounts'")


async def a_nursery_in_the_lock():
    lock = trio.Lock()

    async def child():
        async with lock:
            pass

    async with lock, trio.open_nursery() as nursery:
        nursery.start_soon(child, name="child")


def test_a_nursery_in_the_lock_that_its_task_needs():
    (issue,) = reported(a_nursery_in_the_lock)
    (child, parent) = sorted(issue.cycle, key=lambda wait: wait.task != "child")
    assert (child.waits_for, parent.waits_for) == ("Lock 'lock'", "the task child")
    assert issue.advice.startswith("Wait for the task when the lock has been released")


async def nested_in_a_limiter():
    limiter = trio.CapacityLimiter(3)

    async def works(depth):
        async with limiter:
            await trio.sleep(0.1)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(works, depth + 1, name=f"works {depth + 1}")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(works, 0, name="works 0")


def test_of_several_circles_the_same_is_reported():
    (issue,) = reported(nested_in_a_limiter)
    assert [wait.task for wait in issue.cycle] == [f"works {depth}" for depth in range(4)]


async def starts_a_task_that_needs_the_lock():
    lock = trio.Lock()

    async def child(*, task_status):
        async with lock:
            task_status.started()

    async with trio.open_nursery() as nursery, lock:
        await nursery.start(child, name="child")


def test_a_task_that_cannot_start_is_a_deadlock():
    (issue,) = reported(starts_a_task_that_needs_the_lock)
    assert {wait.task.rpartition(".")[2] for wait in issue.cycle} == {"main", "child"}


# ---- what is none -------------------------------------------------------------------------------


async def a_busy_lock():
    lock = trio.Lock()

    async def works():
        for _ in range(20):
            async with lock:
                await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(works)


async def a_slow_holder():
    limiter = trio.CapacityLimiter(1)

    async def works():
        async with limiter:
            await trio.sleep(25)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(works)
        nursery.start_soon(works)


async def a_limiter_that_no_task_holds():
    limiter = trio.CapacityLimiter(1)
    await limiter.acquire_on_behalf_of("a thread")
    async with limiter:
        pass


async def a_condition_without_news():
    condition = trio.Condition()

    async def waits():
        async with condition:
            await condition.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waits)
        nursery.start_soon(waits)


async def a_permit_of_another_task():
    permits, lock = trio.Semaphore(2), trio.Lock()

    async def slow():
        await permits.acquire()
        await trio.sleep(10)
        permits.release()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(slow)
        nursery.start_soon(moves, permits, lock)
        nursery.start_soon(moves, lock, permits)


async def a_limiter_that_grows():
    limiter, lock = trio.CapacityLimiter(1), trio.Lock()

    async def grows():
        await trio.sleep(10)
        limiter.total_tokens = 2

    async with trio.open_nursery() as nursery:
        nursery.start_soon(grows)
        nursery.start_soon(moves, limiter, lock)
        nursery.start_soon(moves, lock, limiter)


async def a_race():
    lock = trio.Lock()

    async def wins(scope):
        await trio.sleep(10)
        scope.cancel()

    async def needs_it():
        async with lock:
            pass

    async with lock, trio.open_nursery() as nursery:
        nursery.start_soon(wins, nursery.cancel_scope)
        nursery.start_soon(needs_it)


async def started_by_a_helper():
    lock = trio.Lock()

    async def helps(task_status):
        await trio.sleep(10)
        task_status.started()

    async def serves(task_status=trio.TASK_STATUS_IGNORED):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(helps, task_status)
            async with lock:
                pass

    async with trio.open_nursery() as nursery, lock:
        await nursery.start(serves)


@pytest.mark.parametrize(
    "story",
    [
        a_busy_lock,
        a_slow_holder,
        a_limiter_that_no_task_holds,
        a_condition_without_news,
        a_permit_of_another_task,
        a_limiter_that_grows,
        a_race,
        started_by_a_helper,
    ],
)
def test_what_gets_on_is_not_reported(story):
    assert reported(story) == []


# ---- what the program sees ----------------------------------------------------------------------


async def a_holder_that_ends():
    lock = trio.Lock()

    async def takes():
        await lock.acquire()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(takes)
        await trio.sleep(0.1)
        with pytest.raises(trio.BrokenResourceError):
            await lock.acquire()


async def refused():
    lock = trio.Lock()
    async with lock:
        with pytest.raises(RuntimeError, match="already held"):
            await lock.acquire()


async def acquired_at_the_end_of_the_run():
    """By a generator that is closed when the run has no tasks left."""
    permits = trio.Semaphore(0)

    async def generates():
        try:
            yield
        finally:
            with trio.move_on_after(1):
                await permits.acquire()

    left = generates()
    await anext(left)
    LEFT.append(left)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the generator's own end
@pytest.mark.parametrize("story", [a_holder_that_ends, refused, acquired_at_the_end_of_the_run])
def test_the_locks_do_what_they_did(story):
    finished = []

    async def whole():
        await story()
        finished.append(story)

    assert reported(whole) == []
    assert finished == [story]


def test_a_run_that_ends_while_a_lock_is_waited_for_is_let_go():
    runs = []

    async def ends():
        runs.append(weakref.ref(trio.lowlevel.current_root_task()))
        lock = trio.Lock()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(moves, lock, trio.Event())
            await lock.acquire()
            with trio.move_on_after(2.5):
                await trio.sleep_forever()
            nursery.cancel_scope.cancel()

    tracer = LockTracer(lambda file: file == HERE, ImportWatch, now_ns=lambda: int(trio.current_time() * 1e9))
    tracer.init(Desk())
    tracer.start()
    try:
        trio.run(ends, clock=JumpClock())
        gc.collect()
        assert [run() for run in runs] == [None]
    finally:
        tracer.stop()


def test_time_of_a_test_is_not_moved():
    def mock():
        return trio.testing.MockClock(autojump_threshold=0)

    assert reported(opposite_order, clock=mock) == []


def test_nothing_is_left_in_trio():
    kinds = (trio.Lock, trio.Lock.__mro__[1], trio.Semaphore, trio.CapacityLimiter)
    before = {kind: dict(vars(kind)) for kind in kinds}
    reported(opposite_order)
    assert {kind: dict(vars(kind)) for kind in kinds} == before
