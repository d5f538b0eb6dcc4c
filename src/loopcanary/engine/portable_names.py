"""Names of the asyncio work that a thread is in: the callback of a handle, the task of a loop."""

from __future__ import annotations

import functools
import sys
import weakref
from typing import TYPE_CHECKING, Any

from loopcanary.engine.portable_watch import Mark
from loopcanary.model.evidence import CallbackNames

if TYPE_CHECKING:
    from types import CodeType

_NAME_MAX = 256
_PARTIALS_MAX = 8


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
    except Exception:  # noqa: BLE001 - tasks and callbacks are other people's; a name is worth no fault
        return None


def ready_callbacks(loop: Any) -> int:
    """How many callbacks are ready to run after the present one; 0 where that is unknown."""
    ready = getattr(loop, "_ready", None)
    try:
        return 0 if ready is None else len(ready)
    except TypeError:
        return 0


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


def _qualname(thing: Any) -> str:
    name = getattr(thing, "__qualname__", None)
    return (name if isinstance(name, str) else type(thing).__qualname__)[:_NAME_MAX]
