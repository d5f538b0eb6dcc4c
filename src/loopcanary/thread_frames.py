"""The innermost frames of all threads, where they can be had without harm."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import starmap
from operator import call, itemgetter
from types import FrameType, ModuleType
from typing import Any, TypeVar, cast

_T = TypeVar("_T")


def thread_frames() -> dict[int, FrameType]:
    """By thread ident, the caller's own among them; empty where there are other interpreters.

    Any thread, GIL held. `sys._current_frames` makes frame objects for the threads of every interpreter
    (`_PyThread_CurrentFrames` in Python/pystate.c). One that has a GIL of its own runs on, and frees with
    its own allocator what was made with ours: the process aborts (seen on 3.13.0). So it is called in this
    module only.

    CPython 3.11 collects garbage wherever an object is made, and this call makes objects while it holds the
    lock of the list of threads (gh-106883; seen on 3.11.7). A finalizer that ends a thread needs that lock;
    so does another thread that gets the GIL in a finalizer. Both would wait for ever. So the call runs with
    collections off.

    The frames are bound to no name here: this frame is among them, and would keep them all.
    """
    try:
        # All in one call of C: between two lines another thread could get the GIL, and make an interpreter.
        return call_uncollected(_frames()) if sys.version_info < (3, 12) else _frames()()
    except TypeError:  # it takes no arguments: there are others, and nothing was done
        return {}


def call_uncollected(function: Callable[[], _T]) -> _T:
    """Calls a function of C, in which no collection begins then: no code of Python's runs in it."""
    if not gc.isenabled():
        return function()
    calls: tuple[Callable[[], Any], ...] = (gc.disable, function, gc.enable)
    try:
        return cast("_T", list(map(call, calls))[1])
    except BaseException:
        gc.enable()
        raise


def _frames() -> Callable[[], dict[int, FrameType]]:
    """What gives the frames, but raises TypeError where there are other interpreters."""
    if _INTERPRETERS is None:
        return sys._current_frames  # noqa: SLF001 - documented, in spite of its name
    others = map(_BUT_THE_FIRST, map(call, (_INTERPRETERS.list_all,)))
    return partial(next, starmap(sys._current_frames, others))  # noqa: SLF001


def _interpreters() -> ModuleType | None:
    for name in ("_interpreters", "_xxsubinterpreters"):  # from 3.13 on; before
        with suppress(ImportError):
            return importlib.import_module(name)
    return None


_INTERPRETERS = _interpreters()
_BUT_THE_FIRST = itemgetter(slice(1, None))
