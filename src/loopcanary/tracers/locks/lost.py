"""Waits of asyncio that nothing can end any more: an item for a Queue that no living code knows.

Only where the loop's main task, the one that it runs until it is complete, is stuck as well: of any other
task it is not known who may cancel it. See `island` for how that is found out.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import asyncio
import gc
import signal
import sys
from collections.abc import Generator
from functools import partial
from itertools import islice
from types import FrameType
from typing import Any

from loopcanary.tracers.locks.coroutines import code_of, coroutines, local
from loopcanary.tracers.locks.island import Island, island
from loopcanary.tracers.locks.primitives import is_plumbing
from loopcanary.tracers.locks.tasks import Lost, LostWait

_FUTURE = "the result of"
_FAILED_MAX = 10
"""Tasks."""
_WORDS = {
    asyncio.Queue.get.__code__: "an item in",
    asyncio.Queue.put.__code__: "room in",
    asyncio.Queue.join.__code__: "task_done() of",
    asyncio.Condition.wait.__code__: "notify() of",
    asyncio.Event.wait.__code__: "set() of",
}
"""By the code that waits: what it waits for."""
_FOR_EVER = ("set() of", _FUTURE)
"""Waited for in vain on purpose, too: `await asyncio.Event().wait()` of a main task that only serves."""
_RUN = asyncio.Runner.run.__code__
_UNTIL_COMPLETE = asyncio.BaseEventLoop.run_until_complete.__code__
_ENDS_RUN = ("_run_until_complete_cb", "run_until_complete.<locals>.done_cb")
"""Callbacks of the main task: of asyncio, and of uvloop."""
_FUNCTIONS = ("function", "cython_function_or_method")
_BY_CALL = 1 if sys.version_info >= (3, 14) else 2
"""References of a call of uvloop to its argument: its own, and before 3.14 that of the caller's stack."""


def main_task(loop: Any) -> asyncio.Task[Any] | None:
    """The task that the loop runs until it is complete."""
    for task in asyncio.all_tasks(loop):
        for callback, _ in getattr(task, "_callbacks", None) or ():
            # An object of the program's is not asked.
            if type(callback).__name__ in _FUNCTIONS and callback.__qualname__ in _ENDS_RUN:
                return task
    return None


def lost(loop: Any) -> Generator[None, None, Lost | None]:
    """The waits that nothing can end; None: there are none, or it is not known. In small steps, in a callback
    of the loop."""
    held = _by_runner(loop)
    if held is None:
        return None
    found = yield from island(main_task(loop), held)  # no name here holds the task
    if found is None:
        return None
    places = {id(one): place for place, one in enumerate(found.objects)}
    failed = {}
    for place in islice((one for one in sorted(found.lost) if _has_failed(found.objects[one])), _FAILED_MAX):
        failed[place] = found.reached_from(place)
        yield
    waits, blamed, waiting = [], set[int](), 0
    for place in sorted(found.lost):
        task = found.objects[place]
        if not issubclass(type(task), asyncio.Task) or task.done():
            continue
        yield
        waiting += 1
        words, thing, by = _wait(task)
        at = places.get(id(thing), -1)
        knew = {one for one, known in failed.items() if at in known}
        if at in found.lost and (knew if words in _FOR_EVER else _is_known_to_others(found, at, by)):
            waits.append(LostWait(task, words, thing))
            blamed |= knew
    errors = tuple(sorted((found.objects[one].get_name(), _error(found.objects[one])) for one in blamed))
    return Lost(tuple(waits), errors, waiting - len(waits)) if waits else None


def _by_runner(loop: Any) -> int | None:
    """How many references to the main task are those of who runs it. None: not known."""
    task = main_task(loop)
    if task is None or not loop.is_running():
        return None
    found = 0
    handler = _signal.getsignal(signal.SIGINT)  # that of `signal` asks for the repr of what it finds
    if isinstance(handler, partial) and handler.keywords.get("main_task") is task:
        found += 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code not in (_RUN, _UNTIL_COMPLETE):
        frame = frame.f_back
    if frame is not None and frame.f_code is _UNTIL_COMPLETE:
        above = frame.f_back
        return found + (1 if above is None or above.f_code is not _RUN else 2)
    if type(loop).__module__.partition(".")[0] == "uvloop":
        return found + (1 if frame is None else 2 + _BY_CALL)
    return None


def _has_failed(one: Any) -> bool:
    """Whether it is a task that raised, which nobody has looked at."""
    is_task = issubclass(type(one), asyncio.Task)
    return is_task and one.done() and bool(getattr(one, "_log_traceback", False))


def _error(task: Any) -> str:
    return type(task._exception).__name__


def _is_known_to_others(found: Island, place: int, by: Any) -> bool:
    """Not only to the call that waits: `await asyncio.Queue().get()`. (Up to 3.12 it keeps a dict of its
    locals when they have been asked for.)"""
    own = {id(by), *(id(one) for one in gc.get_referents(by) if type(one) is dict)}
    return any(place in found.edges[one] and id(found.objects[one]) not in own for one in found.lost)


def _wait(task: asyncio.Task[Any]) -> tuple[str, Any, Any]:
    """What it waits for, in words and as an object, and the coroutine that does; None: what wakes it is not
    one of these."""
    words, thing, by = "", None, None
    for one in reversed(coroutines(task.get_coro())):
        code = code_of(one)
        if code in _WORDS:
            words, thing, by = _WORDS[code], local(one, "self"), one  # join() waits for an Event of its own
        elif words or code is None or is_plumbing(code):
            break
        else:
            future = task._fut_waiter  # type: ignore[attr-defined]
            return (_FUTURE, future, one) if type(future) is asyncio.Future else ("", None, None)
    return words, thing, by
