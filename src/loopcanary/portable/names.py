"""Names of the work that a thread is in: the callback of a handle, the task of a loop, what a probe says."""

from __future__ import annotations

import functools
import sys
import weakref
from types import CodeType
from typing import Any, NamedTuple

from loopcanary.model.evidence import CallbackNames
from loopcanary.whose_exception import ours

_NAME_MAX = 256
_PARTIALS_MAX = 8


class Mark(NamedTuple):
    """The callback that a sample was taken in. The same key: the same call, if `is_run`."""

    key: object
    names: CallbackNames
    is_run: bool = True


def handle_run_code() -> CodeType | None:
    """Code of `asyncio.Handle._run`, through which each callback runs; None before asyncio is imported."""
    events = sys.modules.get("asyncio.events")
    run = getattr(getattr(events, "Handle", None), "_run", None)
    # Another tool may have wrapped it; the wrapper's code would hide the handle behind other names.
    return getattr(getattr(run, "__wrapped__", run), "__code__", None)


def mark_of(handle: Any, loop: Any) -> Mark | None:
    """The callback that runs; None where it is unknown. Any thread; holds nothing of the program alive."""
    try:
        if handle is not None:
            names = _names_of_callback(handle._callback)  # noqa: SLF001 - there is no public name for it
            return None if names is None else Mark(weakref.ref(handle), names)
        task = _current_task(loop)
        return None if task is None else Mark(weakref.ref(task), _names_of_task(task))
    except ours():  # tasks and callbacks are other people's; a name is worth no fault
        return None


def mark_of_called(code: CodeType | None) -> Mark | None:
    """What the loop's runner has called, where there is no handle. Its runs all look the same."""
    if code is None:
        return None
    return Mark(code, CallbackNames(name=_qualname_of_code(code)[:_NAME_MAX]), is_run=False)


def names_of_work(work: Any) -> CallbackNames | None:
    """The names of a piece of work as a probe describes it: by a name, by an object with `work_names()`,
    which returns the name and that of its task, or None, or by an object with a qualified name. Any thread;
    raises nothing."""
    if work is None or isinstance(work, CallbackNames):
        return work
    if isinstance(work, str):
        return CallbackNames(name=work)
    try:
        named = getattr(work, "work_names", None)
        if named is None:
            return _names_of_callback(work)
        name, task = named()
        return CallbackNames(name=name[:_NAME_MAX], task=None if task is None else task[:_NAME_MAX])
    except ours():  # they are other people's objects; a name is worth no fault
        return None


def context_of_work(work: Any) -> object:
    """The context that the work runs in, if its description by a probe says so (`work_context()`); else
    None. Any thread; raises nothing."""
    try:
        told = getattr(work, "work_context", None)
        return None if told is None else told()
    except ours():  # as above
        return None


def runners_of(loop: Any) -> tuple[tuple[int, int], ...]:
    """The frames that run it, where a probe knows (protocols.PortableSide). Any thread; raises nothing."""
    try:
        runners = getattr(loop, "runners", ())
    except ours():  # it may be the program's own loop
        return ()
    return runners if type(runners) is tuple else ()


def ready_callbacks(loop: Any) -> int:
    """How many callbacks are ready to run after the present one; 0 where that is unknown."""
    ready = getattr(loop, "_ready", None)
    try:
        return 0 if ready is None else len(ready)
    except TypeError:
        return 0


def other_tasks(loop: Any) -> tuple[str, ...]:
    """The names of the loop's tasks that are not done, but for the one that runs, sorted. Any thread; raises
    nothing."""
    tasks = sys.modules.get("asyncio.tasks")
    try:
        if tasks is None or loop is None:
            return ()
        others = tasks.all_tasks(loop) - {tasks.current_task(loop)}
        return tuple(
            sorted((task.get_name()[:_NAME_MAX] for task in others), key=lambda one: (len(one), one))
        )
    except ours():  # they are other people's, and may come and go meanwhile; no name is worth a fault
        return ()


def _current_task(loop: Any) -> Any:
    tasks = sys.modules.get("asyncio.tasks")
    return None if tasks is None or loop is None else tasks.current_task(loop)


def _names_of_callback(callback: Any) -> CallbackNames | None:
    if callback is None:
        return None
    for _ in range(_PARTIALS_MAX):
        if not isinstance(callback, functools.partial):
            break
        callback = callback.func
    owner = getattr(callback, "__self__", None)
    # A task's step is a method of the task, whatever the class of the task.
    if callable(getattr(owner, "get_coro", None)) and callable(getattr(owner, "get_name", None)):
        return _names_of_task(owner)
    return CallbackNames(name=_qualname(callback))


def _names_of_task(task: Any) -> CallbackNames:
    return CallbackNames(name=_qualname(task.get_coro()), task=str(task.get_name())[:_NAME_MAX])


def _qualname_of_code(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def _qualname(thing: Any) -> str:
    name = getattr(thing, "__qualname__", None)
    return (name if isinstance(name, str) else type(thing).__qualname__)[:_NAME_MAX]
