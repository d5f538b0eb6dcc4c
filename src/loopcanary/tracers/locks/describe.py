"""Tasks, locks and stacks in the words of reports."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from types import CodeType, FrameType, GetSetDescriptorType
from typing import Any

from loopcanary.model.issues.locks import WAITERS_MAX, Deadlock, LockLeak, TaskWait
from loopcanary.model.stack_frame import StackFrame
from loopcanary.tracers.locks.asyncio_tasks import view_of
from loopcanary.tracers.locks.coroutines import frames
from loopcanary.tracers.locks.primitives import ACQUIRES, Primitive, inside, is_plumbing
from loopcanary.tracers.locks.tasks import Lost, TaskView
from loopcanary.tracers.locks.threads import WaitingThread, places_of
from loopcanary.tracers.locks.watch import Cycle, Leak
from loopcanary.tracers.places import Owns, frames_of

_FRAMES_MAX = 20
_IN_TURN = "Take locks in the same order everywhere, or hold one at a time"
_OUTSIDE = "Wait for the task when the lock has been released: it needs the lock to end"
_OUTSIDE_THREAD = (
    "Wait for the thread when the lock has been released: what it asks of the loop needs the lock"
)
_WAITED_FOR = "A task that is waited for must not wait for the one that waits"
_BLOCK = "Use `async with`: it releases also where the code between raises, is cancelled or returns"
_LOST = "See to it that the task that should end the wait does so, also when it fails"
_FAILED = "Look at the tasks that knew it, and have failed"
_FAILED_MAX = 5
_TWICE = "It is not reentrant: call what needs it before it is acquired, or leave it to the caller"


def deadlock(cycle: Cycle, began_wall_ns: int, loop: str, owns: Owns) -> Deadlock:
    """The issue of a cycle."""
    views = cycle.views
    waits = []
    for view, before, after in zip(views, (views[-1], *views), (*views[1:], views[0]), strict=False):
        waits.append(
            TaskWait(
                task=view.name,
                waits_for=_waited(view, after),
                holds=None if before.lock is None else lock_words(before.lock, [before, view]),
                is_thread=isinstance(view.task, WaitingThread),
                frames=stack(view, owns),
            )
        )
    return Deadlock(
        began_wall_ns=began_wall_ns,
        duration_ns=cycle.waited_ns,
        loop=loop,
        cycle=tuple(waits),
        waiting=cycle.waiting,
        advice=_advice(views),
    )


def _advice(cycle: Sequence[TaskView]) -> str:
    for_locks = sum(view.lock is not None for view in cycle)
    if not for_locks:
        return _WAITED_FOR
    if for_locks < len(cycle):
        has_thread = any(isinstance(view.task, WaitingThread) for view in cycle)
        return _OUTSIDE_THREAD if has_thread else _OUTSIDE
    return _TWICE if len(cycle) == 1 else _IN_TURN


def lost_waits(lost: Lost, waited_ns: int, began_wall_ns: int, loop: str, owns: Owns) -> Deadlock:
    """The issue of tasks that wait for what nothing can reach any more."""
    waits = []
    for one in lost.waits[:WAITERS_MAX]:
        view = view_of(one.task)
        waits.append(
            TaskWait(
                task=view.name,
                waits_for=f"{one.words} {lock_words(one.thing, [view])}",
                frames=stack(view, owns),
            )
        )
    waits.sort(key=lambda wait: wait.task)
    ended = ", ".join(f"{task} ({error})" for task, error in lost.failed[:_FAILED_MAX])
    return Deadlock(
        began_wall_ns=began_wall_ns,
        duration_ns=waited_ns,
        loop=loop,
        cycle=tuple(waits),
        is_lost=True,
        waiting=lost.waiting + len(lost.waits) - len(waits),
        advice=f"{_FAILED}: {ended}" if ended else _LOST,
    )


def lock_leak(leak: Leak, began_wall_ns: int, loop: str, owns: Owns) -> LockLeak:
    """The issue of a lock that was not released."""
    return LockLeak(
        began_wall_ns=began_wall_ns,
        duration_ns=leak.waited_ns,
        loop=loop,
        primitive=lock_words(leak.lock, leak.waiters),
        acquired_by=leak.note.name,
        has_ended=leak.has_ended,
        acquired=tuple(_stack(leak.note.frames, owns)),
        waiters=tuple(
            TaskWait(
                task=view.name,
                waits_for=lock_words(leak.lock, [view]),
                frames=stack(view, owns),
            )
            for view in leak.waiters[:WAITERS_MAX]
        ),
        waiting=len(leak.waiters),
        advice=_BLOCK,
    )


def _waited(view: TaskView, after: TaskView) -> str:
    if view.lock is not None:
        return lock_words(view.lock, [view, after])
    what = "thread" if isinstance(after.task, WaitingThread) else "task"
    return "itself" if after is view else f"the {what} {after.name}"


def lock_words(lock: Primitive, views: Iterable[TaskView]) -> str:
    """`Lock 'Bank.accounts'`: by the first name that one of the tasks' frames has for it."""
    kind = type(lock).__name__
    for view in views:
        for frame in frames(view.coroutine):
            if not _is_plumbing(frame.f_code) and (name := _name_in(frame, lock)) is not None:
                return f"{kind} '{name}'"
    return kind


def _name_in(frame: FrameType, lock: Primitive) -> str | None:
    for name, value in frame.f_locals.items():
        if inside(value) is lock:
            return name
        attributes = _attributes(value)
        if type(attributes) is dict:
            for attribute, held in tuple(attributes.items()):
                if inside(held) is lock:
                    return f"{type(value).__name__}.{attribute}"
    return next((name for name, value in tuple(frame.f_globals.items()) if inside(value) is lock), None)


def _attributes(value: Any) -> Any:
    """Of an object of a class that has not made something of its own of them, as proxies do."""
    kept = next((vars(kind)["__dict__"] for kind in type(value).__mro__ if "__dict__" in vars(kind)), None)
    return kept.__get__(value) if type(kept) is GetSetDescriptorType else None


def stack(view: TaskView, owns: Owns) -> tuple[StackFrame, ...]:
    """Where the task or the thread waits, without what its library does there."""
    if isinstance(view.task, WaitingThread):
        return tuple(_stack(places_of(view.task), owns))
    return tuple(_stack(((frame.f_code, frame.f_lineno or 0) for frame in frames(view.coroutine)), owns))


def _stack(places: Iterable[tuple[CodeType, int]], owns: Owns) -> Iterator[StackFrame]:
    own = ((code, line) for code, line in places if not _is_plumbing(code))
    return frames_of(islice(own, _FRAMES_MAX), owns)


def _is_plumbing(code: CodeType) -> bool:
    return code in ACQUIRES or code.co_filename == contextlib.__file__ or is_plumbing(code)
