"""Threads that work for tasks, and wait for a task of the loop or for each other: in a thread's work,
`asyncio.run_coroutine_threadsafe(...).result()`.

Only what is sure: the innermost frame of a thread is a wait without a timeout, and says for what; another one
says for which Future it works. To be called on the loop's thread; nothing of the program's is called.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from types import CodeType, FrameType, FunctionType
from typing import Any

from loopcanary.late_dataclass import dataclass
from loopcanary.thread_frames import thread_frames
from loopcanary.tracers.locks.coroutines import code_in, code_of, coroutines, local
from loopcanary.tracers.locks.primitives import THREAD_WAITS, THREAD_WORKS
from loopcanary.tracers.locks.tasks import TaskView

_DEPTH_MAX = 500
_OURS = 3
"""References to a frame's locals: the frame's, ours, and that of the call that counts them."""
_CHAINED_MAX = 10
_Thread: Any = threading.Thread
_Future: Any = concurrent.futures.Future
_OPEN = ("PENDING", "RUNNING")
_ITEM = "self"
"""A pool's work item, which has the Future."""
_RESULTS = {_Future.result.__code__, _Future.exception.__code__}
_BY_CONDITION = threading.Condition.wait.__code__
_BY_LOCK = getattr(getattr(_Thread, "_wait_for_tstate_lock", None), "__code__", None)
"""What `join` waits for before 3.13."""
THREAD_WAITS.update(dict.fromkeys((*_RESULTS, _Thread.join.__code__), "self"))
_CHAINS = next(code_in(asyncio.futures._chain_future.__code__, "_call_check_cancel"), None)  # type: ignore[attr-defined]
"""The callback of a Future that gets the result of another one, which it knows."""
_LIBRARY = (threading.__file__, concurrent.futures.__file__.rpartition("__init__")[0])


@dataclass(frozen=True, slots=True, eq=False)
class WaitingThread:
    """A thread that waits without a timeout."""

    thread: threading.Thread
    ident: int
    name: str
    waits_for: Any
    """A Future of concurrent.futures, a Thread that it joins, what it has asked of trio."""
    works_for: tuple[Any, ...]
    """What is waited for elsewhere, and ends when the thread has done its work."""

    def mark(self) -> Any:
        frame = thread_frames().get(self.ident)
        return None if frame is None else _waited_for(frame)


def chained(callbacks: Iterable[Any], code: CodeType | None, name: str) -> Any:
    """Value of this name in the closure of the first callback that has this code. None: no callback has
    it."""
    for callback in callbacks:
        if type(callback) is FunctionType and callback.__code__ is code is not None:
            return (callback.__closure__ or ())[code.co_freevars.index(name)].cell_contents
    return None


def add_threads(views: dict[int, TaskView]) -> Iterator[None]:
    """Adds the threads that wait, and to each task the thread that it waits for. In small steps."""
    threads = yield from _waiting()
    if not any(thread.works_for for thread in threads):
        return
    by_work = {id(work): one for one in threads for work in (one.thread, *one.works_for)}
    for key, view in tuple(views.items()):
        ends = [_ends(one, views, by_work) for one in view.tasks if id(one) not in views]
        if found := tuple(one for one in ends if one is not None):
            views[key] = replace(view, tasks=(*view.tasks, *found))
        yield
    running = yield from _running(tuple(views.values()))
    for thread in threads:
        ends_it = _ends(thread.waits_for, views, by_work)
        if ends_it is None:
            ends_it = running.get(id(thread.waits_for))
        views[id(thread)] = TaskView(
            task=thread,
            name=thread.name,
            coroutine=None,
            mark=thread.waits_for,
            lock=None,
            tasks=() if ends_it is None else (ends_it,),
            keys=(thread.waits_for,),
            holds=(),
        )
        yield


def places_of(thread: WaitingThread) -> list[tuple[CodeType, int]]:
    """Code and line of its frames, innermost first, without those of the modules that start it and wait."""
    frame = thread_frames().get(thread.ident)
    return [
        (one.f_code, one.f_lineno or 0)
        for one in _frames(frame)
        if not one.f_code.co_filename.startswith(_LIBRARY)
    ]


def _know_pools() -> None:
    """Where the program has loaded them: to load that module changes what happens at its exit."""
    kind = getattr(sys.modules.get("concurrent.futures.thread"), "_WorkItem", None)
    if kind is not None:
        THREAD_WORKS[kind.run.__code__] = _ITEM


def _waiting() -> Generator[None, None, list[WaitingThread]]:
    """Not of a free-threaded CPython, where they run meanwhile."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return []
    _know_pools()
    tops = {_BY_CONDITION, _BY_LOCK, *THREAD_WAITS}
    found = []
    for ident in [ident for ident, frame in thread_frames().items() if frame.f_code in tops]:
        # No frame is kept from one step to the next: it would keep what its locals are.
        thread = _waiting_thread(ident)
        if thread is not None:
            found.append(thread)
        yield
    return found


def _waiting_thread(ident: int) -> WaitingThread | None:
    thread, frame = threading._active.get(ident), thread_frames().get(ident)  # type: ignore[attr-defined]
    if thread is None or frame is None or ident == threading.get_ident():
        return None
    waits_for = _waited_for(frame)
    if waits_for is None:
        return None
    works = tuple(work for one in _frames(frame) if (work := _work(one)) is not None)
    return WaitingThread(thread, ident, _Thread.name.fget(thread), waits_for, works)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    for _ in range(_DEPTH_MAX):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _waited_for(frame: FrameType) -> Any:
    """By a thread with this innermost frame, without a timeout; None: nothing of the kind, or it is there."""
    inner = frame.f_code
    at = frame.f_back if inner in (_BY_CONDITION, _BY_LOCK) else frame
    if at is None or at.f_code not in THREAD_WAITS or (at.f_code in _RESULTS and inner is not _BY_CONDITION):
        return None
    timeout, thing = _locals(at, "timeout", THREAD_WAITS[at.f_code])
    is_over = issubclass(type(thing), _Future) and thing._state not in _OPEN
    return None if timeout is not None or is_over else thing


def _work(frame: FrameType) -> Any:
    """For what a thread works in this frame."""
    name = THREAD_WORKS.get(frame.f_code)
    work = None if name is None else _locals(frame, name)[0]
    return getattr(work, "future", None) if name == _ITEM else work


def _locals(frame: FrameType, *names: str) -> list[Any]:
    """Values of these local variables of a library's function. Before 3.13 CPython keeps a dict of them in
    the frame: it is emptied again, as it would outlive them."""
    found = frame.f_locals
    values = [found.get(name) for name in names]
    if type(found) is dict and sys.getrefcount(found) <= _OURS:
        found.clear()
    return values


def _ends(thing: Any, views: dict[int, TaskView], by_work: dict[int, WaitingThread]) -> Any:
    """The task or the thread whose end it waits for, by way of Futures that are chained to each other."""
    for _ in range(_CHAINED_MAX):
        if id(thing) in views:
            return thing
        if id(thing) in by_work:
            return by_work[id(thing)]
        if issubclass(type(thing), asyncio.Future):
            thing = chained((one for one, _ in getattr(thing, "_callbacks", None) or ()), _CHAINS, "source")
        elif issubclass(type(thing), _Future):
            thing = chained((*thing._done_callbacks,), _CHAINS, "source")
        else:
            break
    return None


def _running(views: Iterable[TaskView]) -> Generator[None, None, dict[int, Any]]:
    """By id of what a thread has asked for, the task that runs it."""
    found: dict[int, Any] = {}
    runners = _runners()
    for view in views if runners else ():
        for one in coroutines(view.coroutine):
            if (name := runners.get(code_of(one))) is not None:
                found[id(local(one, name))] = view.task
        yield
    return found


def _runners() -> dict[CodeType | None, str]:
    """Code that runs what a thread has asked for, and the local that is what the thread waits for: of trio's
    `from_thread.run`, and of anyio's portals."""
    names = (
        ("trio._threads", "Run", "run_system", "self"),
        ("anyio.from_thread", "BlockingPortal", "_call_func", "future"),
    )
    found = ((sys.modules.get(module), kind, method, name) for module, kind, method, name in names)
    methods = ((getattr(getattr(at, kind, None), method, None), name) for at, kind, method, name in found)
    return {method.__code__: name for method, name in methods if isinstance(method, FunctionType)}
