"""The tracer of locks between tasks of asyncio, anyio and trio."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import CodeType, FrameType, GetSetDescriptorType
from typing import Any

from loopcanary.model.issues.locks import WAITERS_MAX, Deadlock, LockLeak, TaskWait
from loopcanary.model.stack_frame import StackFrame
from loopcanary.protocols.plugins import TracerPort
from loopcanary.protocols.tracing import AwaitImport
from loopcanary.tracers.locks.asyncio_tasks import AsyncioTasks
from loopcanary.tracers.locks.coroutines import frames
from loopcanary.tracers.locks.hooks import Acquisition, LockHooks, made
from loopcanary.tracers.locks.primitives import ACQUIRES, ANYIO, TRIO, Primitive, inside, is_plumbing
from loopcanary.tracers.locks.tasks import LoopTasks, TaskView
from loopcanary.tracers.locks.threads import WaitingThread, places_of
from loopcanary.tracers.locks.watch import Cycle, Leak, LoopWatch
from loopcanary.tracers.places import Owns, Places, frames_of
from loopcanary.whose_exception import ours

_UVLOOP = "uvloop"
Notes = Callable[[Primitive], tuple[Acquisition, ...]]


class LockTracer:
    """Reports `deadlock` and `lock-leak`."""

    name = "locks"

    def __init__(
        self,
        owns: Callable[[str], bool],
        await_import: AwaitImport,
        *,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`owns`: whether a file is the program's own code; called on loops' threads."""
        self._owns = owns
        self._waits = [
            await_import((ANYIO,), lambda: self._contain(self._put_in_anyio)),
            await_import((TRIO,), lambda: self._contain(self._put_in_trio)),
            await_import((_UVLOOP,), lambda: self._contain(self._put_in_uvloop)),
        ]
        self._now_ns = now_ns
        self._watches: weakref.WeakKeyDictionary[Any, LoopWatch] = weakref.WeakKeyDictionary()

    def init(self, desk: TracerPort) -> None:
        self._desk = desk
        self._hooks = LockHooks(self._contended, desk.failed, self._begins)

    def start(self) -> None:
        self._hooks.put_in()
        for wait in self._waits:
            wait.start()

    def stop(self) -> None:
        for wait in self._waits:
            wait.cancel()
        self._hooks.take_out()
        watches, self._watches = self._watches, weakref.WeakKeyDictionary()
        for watch in tuple(watches.values()):
            watch.stop()

    def cycle(self, loop: str, cycle: Cycle) -> None:
        began_wall_ns = time.time_ns() - cycle.waited_ns
        self._desk.report(deadlock(cycle, began_wall_ns, loop, self._owns, self._hooks.notes))

    def leak(self, loop: str, leak: Leak) -> None:
        began_wall_ns = time.time_ns() - leak.waited_ns
        issue = lock_leak(leak, began_wall_ns, loop, self._owns)
        self._desk.report(replace(issue, made=tuple(_stack(made(leak.lock), self._owns))))

    def _put_in_uvloop(self) -> None:
        self._hooks.put_in_loop(sys.modules[_UVLOOP].Loop)

    def _put_in_anyio(self) -> None:
        self._hooks.put_in_anyio(sys.modules[ANYIO])

    def _put_in_trio(self) -> None:
        self._hooks.put_in_trio(sys.modules[TRIO], self._contended_in_trio)

    def _begins(self, loop: Any) -> None:
        kind = type(loop)
        # What has timers of its own, such as a loop in a test, gets none of ours.
        if kind.call_at is asyncio.BaseEventLoop.call_at or kind.__module__.partition(".")[0] == _UVLOOP:
            self._watch_of(loop, lambda: AsyncioTasks(loop)).begin()

    def _contended(self, lock: Primitive) -> None:
        loop = asyncio._get_running_loop()
        if loop is not None:
            self._watch_of(loop, lambda: AsyncioTasks(loop)).contended(lock)

    def _contended_in_trio(self, lock: Primitive) -> None:
        from loopcanary.tracers.locks.trio_tasks import TrioTasks, root

        outermost = root()
        if outermost is not None:
            self._watch_of(outermost, TrioTasks).contended(lock)

    def _watch_of(self, loop: Any, tasks: Callable[[], LoopTasks]) -> LoopWatch:
        """`loop`: a loop, or the outermost task of a run of trio. Its own thread."""
        watch = self._watches.get(loop)
        if watch is None:
            watch = self._watches[loop] = LoopWatch(
                tasks=tasks(),
                notes=self._hooks.notes,
                found=self,
                contain=self._contain,
                now_ns=self._now_ns,
            )
        return watch

    def _contain(self, call: Callable[[], object]) -> None:
        try:
            call()
        except ours() as error:  # a callback of the program's loop
            self._desk.failed(error)


_FRAMES_MAX = 20
_BLOCK = "Use `async with`: it also releases if the code inside raises, is cancelled or returns"


def deadlock(cycle: Cycle, began_wall_ns: int, loop: str, owns: Owns, notes: Notes) -> Deadlock:
    views = cycle.views
    names = lock_names([view.lock for view in views if view.lock is not None], views)
    waits = []
    for view, before, after in zip(views, (views[-1], *views), (*views[1:], views[0]), strict=False):
        lock = before.lock
        taken = [] if lock is None else [note for note in notes(lock) if note.task() is view.task]
        waits.append(
            TaskWait(
                task=task_name(view, owns),
                waits_for=_waited(view, after, names, owns),
                holds=None if lock is None else names[id(lock)],
                made=() if lock is None else tuple(_stack(made(lock), owns)),
                taken=_innermost(taken[-1].frames, owns) if taken else None,
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
                task=task_name(view, owns),
                waits_for=lock_words(leak.lock, [view]),
                frames=stack(view, owns),
            )
            for view in leak.waiters[:WAITERS_MAX]
        ),
        waiting=len(leak.waiters),
        advice=_BLOCK,
    )


def _waited(view: TaskView, after: TaskView, names: Mapping[int, str], owns: Owns) -> str:
    if view.lock is not None:
        return names[id(view.lock)]
    what = "thread" if isinstance(after.task, WaitingThread) else "task"
    return "itself" if after is view else f"the {what} {task_name(after, owns)}"


def lock_words(lock: Primitive, views: Iterable[TaskView]) -> str:
    """`Lock 'Bank.accounts'`."""
    return lock_names([lock], tuple(views))[id(lock)]


def lock_names(locks: Iterable[Primitive], views: Sequence[TaskView]) -> dict[int, str]:
    """The words for each lock, by its id: `Lock 'Bank.accounts'`; `Lock 1 'Account.lock'` and `Lock 2 ...`
    where several have that name; `Lock 2` where the tasks' frames have none for it."""
    found = {id(lock): (lock, _name_of(lock, views)) for lock in locks}
    shared = Counter(name for _, name in found.values())
    numbers: Counter[str] = Counter()
    words = {}
    for key, (lock, name) in found.items():
        kind = type(lock).__name__
        numbers[name] += 1
        number = f" {numbers[name]}" if shared[name] > 1 else ""
        words[key] = f"{kind}{number}" + (f" '{name}'" if name else "")
    return words


def _name_of(lock: Primitive, views: Sequence[TaskView]) -> str:
    """The attribute or global that holds it; else the variable, if all frames that know it call it so: as a
    parameter one lock may have many names. Empty: none."""
    around = [frame for view in views for frame in frames(view.coroutine) if not _is_plumbing(frame.f_code)]
    lasting = next((name for frame in around if (name := _lasting_name(frame, lock))), None)
    if lasting is not None:
        return lasting
    local = {name for frame in around for name, value in frame.f_locals.items() if inside(value) is lock}
    return local.pop() if len(local) == 1 else ""


def _lasting_name(frame: FrameType, lock: Primitive) -> str | None:
    for value in frame.f_locals.values():
        attributes = _attributes(value)
        if type(attributes) is dict:
            for attribute, held in tuple(attributes.items()):
                if inside(held) is lock:
                    return f"{type(value).__name__}.{attribute}"
    return next((name for name, value in tuple(frame.f_globals.items()) if inside(value) is lock), None)


def _attributes(value: Any) -> Any:
    """The attributes of an object, as a dict; None if it has no `__dict__`, or its class makes one of its
    own, as proxies do."""
    kept = next((vars(kind)["__dict__"] for kind in type(value).__mro__ if "__dict__" in vars(kind)), None)
    return kept.__get__(value) if type(kept) is GetSetDescriptorType else None


def task_name(view: TaskView, owns: Owns) -> str:
    """Its name; where a package named it after a function inside of one of its own, as Starlette does below a
    middleware, the outermost function of the program that runs in it: the endpoint."""
    if ".<locals>." not in view.name or ((found := stack(view, owns)) and found[-1].in_app):
        return view.name
    return next((frame.qualname for frame in reversed(found) if frame.in_app), view.name)


def stack(view: TaskView, owns: Owns) -> tuple[StackFrame, ...]:
    """Where the task or the thread waits, without what its library does there."""
    if isinstance(view.task, WaitingThread):
        return tuple(_stack(places_of(view.task), owns))
    return tuple(_stack(((frame.f_code, frame.f_lineno or 0) for frame in frames(view.coroutine)), owns))


def _stack(places: Iterable[tuple[CodeType, int]], owns: Owns) -> Iterator[StackFrame]:
    own = ((code, line) for code, line in places if not _is_plumbing(code))
    return frames_of(islice(own, _FRAMES_MAX), owns)


def _innermost(places: Places, owns: Owns) -> StackFrame | None:
    return next(_stack(places, owns), None)


def _is_plumbing(code: CodeType) -> bool:
    return code in ACQUIRES or code.co_filename == contextlib.__file__ or is_plumbing(code)
