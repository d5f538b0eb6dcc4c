"""The search for deadlocks in one loop: which of them have been told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from loopcanary.tracers.locks import watch as watch_module
from loopcanary.tracers.locks.primitives import Primitive
from loopcanary.tracers.locks.tasks import TaskView
from loopcanary.tracers.locks.watch import SUSPECT_NS, Cycle, Leak, LoopWatch

NAMES = ["a", "b"]


@dataclass(eq=False)
class Wait:
    """The mark of a wait."""

    number: int
    """What `id` answers."""


@dataclass
class PairOfTasks:
    """A loop with two tasks that wait for each other, on a clock of its own."""

    kind = "asyncio"
    marks: list[Wait] = field(default_factory=lambda: [Wait(0), Wait(1)])
    asked: list[Callable[[], object]] = field(default_factory=list)
    now_ns: int = 0
    are_seen: bool = True

    def call_later(self, seconds: float, call: Callable[[], object]) -> None:
        self.now_ns += int(seconds * 1e9)
        self.asked.append(call)

    def all(self) -> Iterable[str]:
        return NAMES if self.are_seen else []

    def main_mark(self) -> None:
        """It has none."""

    def view(self, task: str) -> TaskView:
        other = NAMES[1 - NAMES.index(task)]
        mark = self.mark(task)
        return TaskView(task, task, None, mark, lock=None, tasks=(other,), keys=(), holds=())

    def mark(self, task: str) -> Wait:
        return self.marks[NAMES.index(task)]

    def may_release(self, lock: Primitive, others: Sequence[TaskView]) -> bool:
        return any(view.lock is lock for view in others)


@dataclass
class Told:
    cycles: list[tuple[str, Cycle]] = field(default_factory=list)

    def cycle(self, loop: str, cycle: Cycle) -> None:
        self.cycles.append((loop, cycle))

    def leak(self, loop: str, leak: Leak) -> None:
        raise AssertionError((loop, leak))


class Waiter:
    def done(self) -> bool:
        return False


def look_until_quiet(tasks: PairOfTasks, told: Told) -> LoopWatch:
    notes: Any = {}
    watch = LoopWatch(tasks, notes.get, told, lambda call: call(), lambda: tasks.now_ns)
    again(watch, tasks)
    return watch


def again(watch: LoopWatch, tasks: PairOfTasks) -> None:
    """A task waits for a lock, until its tasks have been looked at; then it no longer does."""
    lock: Any = asyncio.Lock()
    lock._locked, lock._waiters = True, [Waiter()]
    watch.contended(lock)
    began_ns = tasks.now_ns
    while tasks.now_ns - began_ns < 2 * SUSPECT_NS:
        tasks.asked.pop()()
    lock._waiters = []
    while tasks.asked:
        tasks.asked.pop()()


def test_a_cycle_is_found_once():
    tasks, told = PairOfTasks(), Told()
    watch = look_until_quiet(tasks, told)
    again(watch, tasks)
    ((_, cycle),) = told.cycles
    assert [view.name for view in cycle.views] == NAMES


def test_waits_with_the_numbers_of_earlier_ones_are_others(monkeypatch: pytest.MonkeyPatch):
    """As CPython gives the address of what is gone to what is new."""
    monkeypatch.setattr(watch_module, "id", lambda one: getattr(one, "number", id(one)), raising=False)
    tasks, told = PairOfTasks(), Told()
    watch = look_until_quiet(tasks, told)
    told.cycles.clear()
    tasks.marks = [Wait(0), Wait(1)]
    again(watch, tasks)
    assert len(told.cycles) == 1


def test_a_younger_cycle_than_the_suspect_has_waited_no_time():
    """It is in no line that was suspected."""
    tasks, told = PairOfTasks(), Told()
    notes: Any = {}

    def now_ns() -> int:
        tasks.now_ns += 1
        return tasks.now_ns

    again(LoopWatch(tasks, notes.get, told, lambda call: call(), now_ns), tasks)
    ((_, cycle),) = told.cycles
    assert cycle.waited_ns == 0


def test_a_cycle_that_a_look_did_not_see_is_found_by_the_next():
    """No look sees threads while there are other interpreters."""
    tasks, told = PairOfTasks(), Told()
    notes: Any = {}
    watch = LoopWatch(tasks, notes.get, told, lambda call: call(), lambda: tasks.now_ns)
    watch.begin()
    for tasks.are_seen in (True, False, True):
        assert told.cycles == []
        tasks.asked.pop()()
    assert len(told.cycles) == 1


def test_two_waits_that_have_gone_on_between_looks_are_none():
    tasks, told = PairOfTasks(), Told()
    notes: Any = {}
    watch = LoopWatch(tasks, notes.get, told, lambda call: call(), lambda: tasks.now_ns)
    watch.begin()
    for _ in range(3):
        tasks.asked.pop()()
        tasks.marks = [tasks.marks[0], Wait(1)]
    assert told.cycles == []
