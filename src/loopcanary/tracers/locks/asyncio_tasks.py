"""What tasks of asyncio wait for and hold, on its own loops and uvloop's."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import Context
from types import GeneratorType
from typing import Any, TypeAlias

from loopcanary.tracers.locks.coroutines import code_in, code_of, coroutines, held, local, runs
from loopcanary.tracers.locks.primitives import ACQUIRES, GROUP_EXITS, HANDLES, STARTS, Primitive, releases
from loopcanary.tracers.locks.tasks import TaskView
from loopcanary.tracers.locks.threads import chained

_CONDITION_WAIT = asyncio.Condition.wait.__code__
_WAIT = asyncio.tasks._wait.__code__  # type: ignore[attr-defined]
_WAIT_FOR = asyncio.wait_for.__code__
_NESTED_MAX = 20
"""Futures of `shield` and `gather`, one inside the other."""
_Futures: TypeAlias = tuple[asyncio.Future[Any], ...]
_GATHERING = asyncio.tasks._GatheringFuture  # type: ignore[attr-defined]


_SHIELD = next(code_in(asyncio.shield.__code__, "_outer_done_callback"), None)
_ITERATOR = getattr(asyncio.tasks, "_AsCompletedIterator", None)
_NEXT_COMPLETED = (
    (*code_in(asyncio.as_completed.__code__, "_wait_for_one"),)
    if _ITERATOR is None
    else (_ITERATOR._wait_for_one.__code__,)
)


class AsyncioTasks:
    """See LoopTasks."""

    def __init__(self, loop: Any) -> None:
        self.kind = "uvloop" if type(loop).__module__.partition(".")[0] == "uvloop" else "asyncio"
        self._loop: Callable[[], Any] = weakref.ref(loop)
        """It keeps what looks at it alive, and not the other way round."""

    def call_later(self, seconds: float, call: Callable[[], object]) -> None:
        context = Context()  # the task that happens to ask first has its request's scene
        if seconds:
            self._loop().call_later(seconds, call, context=context)
        else:
            self._loop().call_soon(call, context=context)

    def all(self) -> Iterable[Any]:
        return asyncio.all_tasks(self._loop())

    def view(self, task: asyncio.Task[Any]) -> TaskView:
        return view_of(task)

    def mark(self, task: asyncio.Task[Any]) -> Any:
        return None if task.done() else _mark(task)

    def may_release(self, lock: Primitive, others: Sequence[TaskView]) -> bool:
        at_ends = (one[0] for view in others for one in getattr(view.task, "_callbacks", None) or ())
        return any(releases(callback, lock) for callback in (*_timed(self._loop()), *at_ends))


def _timed(loop: Any) -> Iterator[Any]:
    """The callbacks of the loop's timers; with uvloop all that a timer refers to: the loop has its timers in
    a set."""
    for timer in getattr(loop, "_scheduled", None) or ():
        yield getattr(timer, "_callback", None)
    if type(loop).__module__.partition(".")[0] == "uvloop":
        for held in gc.get_referents(loop):
            for one in tuple(held) if type(held) is set else ():
                if type(one).__name__ == "TimerHandle":
                    yield from gc.get_referents(one)


def view_of(task: asyncio.Task[Any]) -> TaskView:
    outermost = task.get_coro()
    chain = coroutines(outermost)
    lock, tasks, keys = _waits(task, chain)
    mark = _mark(task)
    return TaskView(
        task=task,
        name=task.get_name(),
        coroutine=outermost,
        mark=mark,
        lock=None if mark is None else lock,
        tasks=() if mark is None else tasks,
        keys=keys,
        holds=held(chain, lock, _in_condition(chain)),
    )


def _mark(task: asyncio.Task[Any]) -> Any:
    future = getattr(task, "_fut_waiter", None)
    return None if future is None or future.done() else future


def _waits(task: asyncio.Task[Any], chain: list[Any]) -> tuple[Primitive | None, _Futures, tuple[Any, ...]]:
    """Lock, tasks and keys of a TaskView."""
    for one in reversed(chain):
        code = code_of(one)
        if code in ACQUIRES:
            return local(one, "self"), (), ()
        if code is _WAIT:
            is_all = local(one, "return_when") == asyncio.ALL_COMPLETED
            return None, _open(local(one, "fs")) if is_all else _last(local(one, "fs")), ()
        if code in GROUP_EXITS:
            group = local(one, "self")
            scope = getattr(group, "cancel_scope", None)  # anyio's
            return None, _open(group._tasks), () if scope is None else (group, scope)
        if code in STARTS:
            status = local(one, "task_status") or local(one, "future")  # the latter before anyio 4.14
            return None, _open(_started(one)), (status,)
        if code in HANDLES:
            return None, _behind_handle(asyncio.all_tasks(task.get_loop()), local(one, "self")), ()
        if code is _WAIT_FOR and isinstance(inner := local(one, "fut"), asyncio.Future):
            return None, _open((inner,)), ()
        if code in _NEXT_COMPLETED:
            return None, _last(_to_complete(one, chain)), ()
    return None, _behind(getattr(task, "_fut_waiter", None)), ()


def _behind(future: Any, depth: int = _NESTED_MAX) -> _Futures:
    """The tasks whose ends would end it; or itself: a thread may be at work for it."""
    if not isinstance(future, asyncio.Future) or future.done() or not depth:
        return ()
    if isinstance(future, _GATHERING):
        return tuple(one for child in future._children for one in _behind(child, depth - 1))
    # `asyncio.shield` gave a future for another one, which its callback knows.
    inner = chained((one for one, _ in getattr(future, "_callbacks", None) or ()), _SHIELD, "inner")
    return (future,) if inner is None else _behind(inner, depth - 1)


def _to_complete(waits: Any, chain: list[Any]) -> Any:
    """The tasks of `asyncio.as_completed` that are not done, where this is its wait for the next one. From
    CPython 3.13 on its object has them; before, the generator that the waiting task goes through."""
    if (iterator := local(waits, "self")) is not None:
        return iterator._todo
    makes, done = asyncio.as_completed.__code__, local(waits, "done")
    around = (held for one in chain for held in gc.get_referents(one) if type(held) is GeneratorType)
    mine = (held for held in around if held.gi_code is makes and local(held, "done") is done)
    return next((local(held, "todo") for held in mine), ())


def _started(start: Any) -> tuple[Any, ...]:
    """The task for which `TaskGroup.start` of anyio waits. From 4.14 on it is known by its handle."""
    task, handle = local(start, "task"), local(start, "handle")
    if isinstance(task, asyncio.Task):
        return (task,)
    return _behind_handle(local(start, "self")._tasks, handle)


def _behind_handle(tasks: Iterable[Any], handle: Any) -> tuple[Any, ...]:
    return tuple(one for one in tuple(tasks) if handle is not None and runs(one.get_coro(), handle))


def _last(futures: Any) -> _Futures:
    """The last one that is not done, of futures of which any will do; empty if several are not."""
    left = _open(futures)
    return left if len(left) == 1 else ()


def _open(futures: Any) -> _Futures:
    return tuple(one for one in tuple(futures or ()) if not one.done())


def _in_condition(chain: list[Any]) -> Primitive | None:
    """The lock of the condition that it waits for: released meanwhile, though its block is open."""
    for one in reversed(chain):
        if code_of(one) is _CONDITION_WAIT:
            condition = local(one, "self")
            return getattr(condition, "_lock", None)
    return None
