"""The innermost frames of all threads, where they can be had without harm."""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from types import FrameType, ModuleType


def thread_frames() -> dict[int, FrameType]:
    """By thread ident, the caller's own among them; empty where there are other interpreters.

    Any thread, GIL held. `sys._current_frames` makes frame objects for the threads of every interpreter
    (`_PyThread_CurrentFrames` in Python/pystate.c). One that has a GIL of its own runs on, and frees with
    its own allocator what was made with ours: the process aborts (seen on 3.13.0).
    """
    others = _INTERPRETERS is not None and len(_INTERPRETERS.list_all()) > 1
    return {} if others else sys._current_frames()  # noqa: SLF001 - documented, in spite of its name


def _interpreters() -> ModuleType | None:
    for name in ("_interpreters", "_xxsubinterpreters"):  # from 3.13 on; before
        with suppress(ImportError):
            return importlib.import_module(name)
    return None


_INTERPRETERS = _interpreters()
