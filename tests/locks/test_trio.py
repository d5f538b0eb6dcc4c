"""trio's locks: which deadlocks are found, and what is none. In virtual time."""

from __future__ import annotations

import gc
import weakref
from functools import partial

import anyio
import pytest
import trio
import trio.testing

from loopcanary.kinds.deadlock import DeadlockKind
from loopcanary.probes import ImportWatch
from loopcanary.tracers.locks.tracer import LockTracer

from .group_stories import CIRCLES, HANDLES, PARENTS, QUIET, both, moves, nested_in_a_limiter, opposite_order
from .stories import Desk, told_with

HERE = __file__.rpartition("/")[0]
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


def started(desk):
    def now_ns():
        return int(trio.current_time() * 1e9)

    tracer = LockTracer(lambda file: file.startswith(HERE), ImportWatch, now_ns=now_ns)
    tracer.init(desk)
    tracer.start()
    return tracer


def reported(story, seconds=60, clock=JumpClock):
    """The issues of a story that has this long."""
    desk = Desk()
    tracer = LockTracer(
        lambda file: file.startswith(HERE), ImportWatch, now_ns=lambda: int(trio.current_time() * 1e9)
    )
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


# ---- tasks that wait for each other -------------------------------------------------------------


async def fair_locks():
    await both(trio, trio.StrictFIFOLock(), trio.Lock())


async def through_anyio():
    await both(trio, anyio.Lock(), anyio.Semaphore(1))


async def limiters_of_anyio():
    await both(trio, anyio.CapacityLimiter(1), trio.CapacityLimiter(1))


@pytest.mark.parametrize("story", [*told_with(trio, CIRCLES), fair_locks, through_anyio, limiters_of_anyio])
def test_a_deadlock_is_found_once(story):
    (issue,) = reported(story)
    assert (issue.kind.value, issue.loop) == ("deadlock", "trio")
    assert [wait.task for wait in issue.cycle] == ["pay", "refund"]
    assert all(wait.frames and wait.frames[0].in_app for wait in issue.cycle)
    assert issue.waiting == 1  # main, in the nursery
    assert 3e9 <= issue.duration_ns <= 5e9


def test_a_deadlock_says_who_holds_what():
    (issue,) = reported(partial(opposite_order, trio))
    first, second = issue.cycle
    assert (first.holds, first.waits_for) == ("Lock 'Bank.accounts'", "Lock 'Bank.ledger'")
    assert (second.holds, second.waits_for) == ("Lock 'Bank.ledger'", "Lock 'Bank.accounts'")


@pytest.mark.parametrize("story", [*told_with(trio, PARENTS), *told_with(anyio, HANDLES)])
def test_a_nursery_that_needs_the_lock_around_it(story):
    (issue,) = reported(story)
    (child, parent) = sorted(issue.cycle, key=lambda wait: wait.task != "child")
    assert (child.waits_for, parent.waits_for) == ("Lock 'lock'", "the task child")
    assert DeadlockKind().advice(issue).startswith("Release the lock before waiting for the task")


def test_of_several_circles_the_same_is_reported():
    (issue,) = reported(partial(nested_in_a_limiter, trio))
    assert [wait.task for wait in issue.cycle] == [f"works {depth}" for depth in range(4)]


async def an_anyio_limiter_that_grows():
    places, lock = anyio.CapacityLimiter(1), anyio.Lock()

    async def grows():
        await trio.sleep(50)
        places.total_tokens = 2

    async def moves(first, second):
        async with first:
            await trio.sleep(0.1)
            async with second:
                pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(grows)
        nursery.start_soon(moves, places, lock)
        nursery.start_soon(moves, lock, places)


@pytest.mark.parametrize("story", [*told_with(trio, QUIET), an_anyio_limiter_that_grows])
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
            nursery.start_soon(moves, trio, lock, trio.Event())
            await lock.acquire()
            with trio.move_on_after(2.5):
                await trio.sleep_forever()
            nursery.cancel_scope.cancel()

    tracer = LockTracer(
        lambda file: file.startswith(HERE), ImportWatch, now_ns=lambda: int(trio.current_time() * 1e9)
    )
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

    assert reported(partial(opposite_order, trio), clock=mock) == []


def test_nothing_is_left_in_trio():
    kinds = (trio.Lock, trio.Lock.__mro__[1], trio.Semaphore, trio.CapacityLimiter)
    before = {kind: dict(vars(kind)) for kind in kinds}
    reported(partial(opposite_order, trio))
    assert {kind: dict(vars(kind)) for kind in kinds} == before
