"""Looks at the locks of one loop for which tasks wait, on the loop's own thread: once a second while there
are any, and at tasks only where the same one has been the first in line for 3 s. At tasks that wait for each
other without a lock every 30 s, or so seldom that it costs little.

After the check of Android's leaked barriers: that the look is a callback of the loop shows that the loop is
healthy, and nothing is acquired, queued or woken.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterator
from dataclasses import field
from typing import Any, Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.tracers.locks.coroutines import knows, may_release
from loopcanary.tracers.locks.hooks import Acquisition
from loopcanary.tracers.locks.primitives import Primitive, in_line, is_lock, is_taken, may_be_gate, owners
from loopcanary.tracers.locks.tasks import (
    LoopTasks,
    TaskView,
    cycles,
    held_up,
    holders_by_block,
    ours,
    reached,
    stuck,
)
from loopcanary.tracers.locks.threads import WaitingThread, add_threads

EVERY_S = 1.0
SUSPECT_NS = 3_000_000_000
LEAK_NS = 7_500_000_000
SEMAPHORE_LEAK_NS = 30_000_000_000
"""Permits are handed on more often than locks are."""
_EXAMINED_AT_NS = (SUSPECT_NS, LEAK_NS, SEMAPHORE_LEAK_NS)
"""How long the first in line has waited when tasks are looked at: a look at all of them is not cheap."""
_SLICE_NS = 500_000
"""The most of the loop's time that is taken at once."""
_CHECKS = 3
_FIRST_S = 3.0
IDLE_S = 30.0
_IDLE_SHARE = 2_000
"""Of the time at most one part in as many goes into these looks."""


@dataclass(slots=True)
class Queue:
    """A lock for which tasks wait."""

    lock: weakref.ref[Primitive]
    first: Callable[[], Any] = lambda: None
    """The mark of the task that is first in line, if it is still there: the loop may have ended."""
    since_ns: int = 0
    checks: int = 0
    examined: int = 0


@dataclass(frozen=True, slots=True)
class Cycle:
    """Tasks, and threads that work for tasks, of which each waits for the next."""

    views: tuple[TaskView, ...]
    waiting: int
    """Other tasks that cannot go on."""
    waited_ns: int


@dataclass(frozen=True, slots=True)
class Leak:
    """A lock that nobody will release."""

    lock: Primitive
    note: Acquisition
    has_ended: bool
    waiters: tuple[TaskView, ...]
    waited_ns: int


class LockReceiver(Protocol):
    """Gets what was found, on the loop's thread."""

    def cycle(self, loop: str, cycle: Cycle) -> None:
        """Once for the same tasks."""

    def leak(self, loop: str, leak: Leak) -> None:
        """Once for the same acquisition."""


@dataclass(slots=True)
class LoopWatch:
    """The locks of one loop. Its own thread only. What raises is the caller's to catch."""

    tasks: LoopTasks
    notes: Callable[[Primitive], tuple[Acquisition, ...]]
    found: LockReceiver
    contain: Callable[[Callable[[], object]], object]
    """Calls a function, so that nothing gets out."""
    now_ns: Callable[[], int]
    is_on: bool = True
    _queues: dict[int, Queue] = field(default_factory=dict)
    _is_asked: bool = False
    """The loop will call `_tick`."""
    _told: weakref.WeakValueDictionary[int, object] = field(default_factory=weakref.WeakValueDictionary)
    """Marks of the waits in cycles, and acquisitions, by their ids: nothing of theirs is called."""
    _suspected: weakref.WeakValueDictionary[int, object] = field(default_factory=weakref.WeakValueDictionary)
    """As `_told`, of cycles that a look of those every 30 s has seen."""
    _is_begun: bool = False
    _looked_ns: int = 0
    """When the last look without a lock was."""

    def begin(self) -> None:
        """Looks from time to time even while no lock is waited for. Once a loop."""
        if not self._is_begun:
            self._is_begun = True
            self._looked_ns = self.now_ns()
            self.tasks.call_later(_FIRST_S, self._idle_tick)

    def contended(self, lock: Primitive) -> None:
        """A task is about to wait for it."""
        if id(lock) not in self._queues:
            self._queues[id(lock)] = Queue(weakref.ref(lock, ours))
            self._ask()

    def stop(self) -> None:
        """Looks no more; a timer that is set does nothing. Any thread."""
        self.is_on = False

    def _ask(self) -> None:
        if not self._is_asked:
            self._is_asked = True
            self.tasks.call_later(EVERY_S, self._tick)

    def _tick(self) -> None:
        self._is_asked = False
        if self.is_on:
            self.contain(self._look)

    def _look(self) -> None:
        now_ns = self.now_ns()
        suspects = [queue for queue in list(self._queues.values()) if self._is_suspect(queue, now_ns)]
        if suspects:
            self._continue(self._examined(suspects), self._ask_again)
        elif self._queues:
            self._ask()

    def _is_suspect(self, queue: Queue, now_ns: int) -> bool:
        lock = queue.lock()
        first = None if lock is None else first_in_line(lock)
        if lock is None or first is None:
            self._queues = {key: one for key, one in self._queues.items() if one is not queue}
            return False
        if first is not queue.first():
            queue.first, queue.since_ns = weakref.ref(first, ours), now_ns
            queue.checks = queue.examined = 0
            return False
        queue.checks += 1
        if queue.checks < _CHECKS or queue.examined >= len(_EXAMINED_AT_NS):
            return False
        is_due = now_ns - queue.since_ns >= _EXAMINED_AT_NS[queue.examined]
        queue.examined += is_due
        return is_due

    def _continue(self, work: Iterator[None], then: Callable[[], object]) -> None:
        """A slice of it; the rest in later turns."""
        until_ns = self.now_ns() + _SLICE_NS
        for _ in work:
            if self.now_ns() >= until_ns:
                self.tasks.call_later(0, lambda: self.contain(lambda: self._continue(work, then)))
                return
        then()

    def _ask_again(self) -> None:
        if self.is_on and self._queues:
            self._ask()

    def _idle_tick(self) -> None:
        if self.is_on:
            self.contain(lambda: self._continue(self._idle_look(), lambda: None))

    def _idle_look(self) -> Iterator[None]:
        spent_ns, began_ns = 0, self.now_ns()
        for _ in self._without_lock():
            spent_ns += self.now_ns() - began_ns
            yield
            began_ns = self.now_ns()
        spent_ns += self.now_ns() - began_ns
        self._looked_ns = self.now_ns()
        self.tasks.call_later(max(IDLE_S, spent_ns * _IDLE_SHARE / 1e9), self._idle_tick)

    def _without_lock(self) -> Iterator[None]:
        views = yield from self._views()
        yield from self._cycles(views, holders_by_block(views), [])

    def _views(self) -> Generator[None, None, dict[int, TaskView]]:
        views: dict[int, TaskView] = {}
        for task in self.tasks.all():
            views[id(task)] = self.tasks.view(task)
            yield
        yield from add_threads(views)
        return views

    def _examined(self, suspects: list[Queue]) -> Iterator[None]:
        views = yield from self._views()
        entered = holders_by_block(views)
        yield from self._cycles(views, entered, suspects)
        for queue in suspects:
            yield from self._leaks(queue, views, entered)
            yield

    def _cycles(
        self, views: dict[int, TaskView], entered: dict[int, list[int]], suspects: list[Queue]
    ) -> Iterator[None]:
        """Without suspects: those that an earlier look has seen, too; not always the last one, since a look
        sees no threads while there are other interpreters (thread_frames.py)."""

        def holders(lock: Primitive) -> list[int]:
            return _holders(lock, views, entered) or self._by_note(lock, views)

        waits = yield from stuck(views, holders)
        since_ns = self._looked_ns
        locks = {id(view.lock): view.lock for view in views.values() if view.lock is not None}
        by_note = {key for key, lock in locks.items() if is_lock(lock) and not _holders(lock, views, entered)}
        found = yield from cycles(waits, lambda task: (views[task].name, task))
        for cycle in found:
            members = tuple(views[task] for task in cycle)
            others = [view for task, view in views.items() if task not in waits]
            may_end = any(self._is_passed_on_later(one, others, by_note) for one in members)
            for other in others:
                may_end = may_end or any(_may_end(other, one, by_note) for one in members)
                yield
            is_told = all(self._is_told(one.mark) for one in members)
            rests_on = [views[task] for task in reached(views, holders, cycle) & waits.keys()]
            if may_end or is_told or not all(map(self._is_unchanged, rests_on)):
                continue
            if not suspects and not all(self._suspected.get(id(one.mark)) is one.mark for one in members):
                self._suspected.update({id(one.mark): one.mark for one in members})
            else:
                self._told.update({id(one.mark): one.mark for one in members})
                theirs = {id(one.lock) for one in members}
                since = [one.since_ns for one in suspects if id(one.lock()) in theirs]
                now_ns = self.now_ns()
                waited_ns = now_ns - min(since, default=now_ns if suspects else since_ns)
                waiting = sum(one not in cycle and not _is_thread(views[one]) for one in waits)
                self.found.cycle(self.tasks.kind, Cycle(members, waiting, waited_ns))

    def _is_told(self, one: object) -> bool:
        """What has another's id, which is gone, is not that one."""
        return one is not None and self._told.get(id(one)) is one

    def _is_unchanged(self, view: TaskView) -> bool:
        """Whether the task has not run since it was looked at."""
        task = view.task
        mark = task.mark() if _is_thread(view) else self.tasks.mark(task)
        return view.mark is not None and view.mark is mark

    def _is_passed_on_later(self, wait: TaskView, others: list[TaskView], by_note: set[int]) -> bool:
        """Whether a timer, the end of another task or a thread may give back a permit, or open a gate."""
        lock = wait.lock
        if lock is None or (is_lock(lock) and id(lock) not in by_note):
            return False
        return self.tasks.may_release(lock, others) or self._may_be_gate(lock)

    def _may_be_gate(self, lock: Primitive) -> bool:
        return may_be_gate(note.frames for note in self.notes(lock))

    def _by_note(self, lock: Primitive, views: dict[int, TaskView]) -> list[int]:
        """The task that called `acquire()`. Of a semaphore any task may give a permit back, and one that
        waits for the lock itself may wait for another one to release it: neither is said to hold it."""
        notes = self.notes(lock)
        task = notes[-1].task() if notes and is_lock(lock) else None
        view = None if task is None else views.get(id(task))
        return [] if view is None or view.lock is lock else [id(task)]

    def _leaks(
        self, queue: Queue, views: dict[int, TaskView], entered: dict[int, list[int]]
    ) -> Iterator[None]:
        lock, now_ns = queue.lock(), self.now_ns()
        if lock is None or first_in_line(lock) is not queue.first():
            return
        notes = self.notes(lock)
        waited_ns = now_ns - queue.since_ns
        if not notes or waited_ns < (LEAK_NS if is_lock(lock) else SEMAPHORE_LEAK_NS):
            return
        told = owners(lock)
        if entered.get(id(lock)) if told is None else not all(task.done() for task in told):
            return
        alive = [task for note in notes if (task := note.task()) is not None and not task.done()]
        waiters = tuple(view for view in views.values() if view.lock is lock)
        waits_itself = is_lock(lock) and any(view.task in alive for view in waiters)
        if alive and not waits_itself:
            return
        idle = yield from held_up(
            views, lambda one: _holders(one, views, entered), [id(view.task) for view in waiters]
        )
        others = [view for task, view in views.items() if task not in idle]
        if self.tasks.may_release(lock, others) or self._may_be_gate(lock):
            return
        for view in others:
            if _may_pass_on(view, lock, is_held=bool(alive)):
                return
            yield
        note = notes[-1]
        is_as_before = first_in_line(lock) is queue.first() and self.notes(lock) == notes
        if is_as_before and not self._is_told(note):
            self._told[id(note)] = note
            order = {id(mark): place for place, mark in enumerate(in_line(lock))}
            waiters = tuple(sorted(waiters, key=lambda view: order.get(id(view.mark), len(order))))
            self.found.leak(self.tasks.kind, Leak(lock, note, not alive, waiters, waited_ns))


def _is_thread(view: TaskView) -> bool:
    return isinstance(view.task, WaitingThread)


def _may_pass_on(other: TaskView, lock: Primitive, *, is_held: bool) -> bool:
    """Whether a task that does not wait for the lock may release it. The task must know the lock; if the
    lock's holder has ended, the task's code must release something, too."""
    is_certain = not is_held and is_lock(lock)
    return knows(other.coroutine, lock) and (not is_certain or may_release(other.coroutine))


def _holders(lock: Primitive, views: dict[int, TaskView], entered: dict[int, list[int]]) -> list[int]:
    """Ids of the tasks that hold the lock: those that it names, else those that entered it by
    `async with`."""
    told = owners(lock)
    if told is None:
        return entered.get(id(lock), [])
    # What is not a task of this loop may go on.
    return [id(one) for one in told] if all(id(one) in views for one in told) else []


def _may_end(other: TaskView, wait: TaskView, by_note: set[int]) -> bool:
    """Whether a task that can go on may end the wait of one that cannot. It may give back a permit of a
    primitive that is not a lock, cancel a nursery, or say that a task has started. It may also release a lock
    whose holder only a note names: such a lock may be a gate, which another task opens."""
    lock = wait.lock
    if lock is not None and is_lock(lock):
        return id(lock) in by_note and knows(other.coroutine, lock) and may_release(other.coroutine)
    keys = wait.keys if lock is None else (lock,)
    return any(key is not None and knows(other.coroutine, key) for key in keys)


def first_in_line(lock: Primitive) -> Any:
    """The mark of the first task that waits for the lock; None: no task waits, or the lock is free."""
    return next(iter(in_line(lock)), None) if is_taken(lock) else None
