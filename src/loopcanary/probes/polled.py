"""Programs that ask a toolkit for its events by themselves, again and again: `while running: root.update()`.

What such a program does between two of these calls (pumps) is in no turn of the toolkit's, though its windows
are dead meanwhile. It is a turn of the program's own from the third pump on that one running function makes
from one place of its code, and until that function returns or a window goes. Nothing else proves that the
program will be back: a dialog before a long computation pumps as well, and so do the tests of a suite, but no
function of the program is around all of these.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import TYPE_CHECKING

from loopcanary.facts import library_folders
from loopcanary.whose_exception import ours

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from loopcanary.protocols.loops import LoopHooks

_PUMPS = 3
_FRAMES_MAX = 16
"""The frames of a pump that are looked at, innermost first: deeper in, it is a library's own business."""
_OWN_MAX = 3
"""Of these, functions of the program: one that pumps, `step()`, and the loop that calls it. What is around
more than that is around everything."""
_PLACES_MAX = 16
_IS_KEPT = 0x20 | 0x80 | 0x200
"""CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR: such a frame is there, too, while it does not run."""


class _Mark:
    """Lies on a frame, as what traces its lines, from a pump on until its function returns: only this tells
    whether two pumps have a running function in common. A tracer that is set meanwhile may call it."""

    __slots__ = ("__weakref__", "_polled", "_thread", "pumps", "round")

    def __init__(self, polled: Polled, thread: int) -> None:
        self._polled = polled
        self._thread = thread
        self.round = 0
        self.pumps: dict[int, int] = {}
        """By the place in the function's code."""

    def __call__(self, *_: object) -> None:
        """Traces nothing."""

    def __del__(self, ident: Callable[[], int] = threading.get_ident) -> None:
        if ident() == self._thread:
            self._polled.returned(self)


class Polled(threading.local):
    """What is known of one thread's pumps. Nothing is raised."""

    def __init__(self, hooks: LoopHooks) -> None:
        self._hooks = hooks
        self._round = 1
        self._inside = 0
        """Calls that pump and go on."""
        self._open: weakref.ref[_Mark] | None = None

    @property
    def is_open(self) -> bool:
        """Whether what the program does between two pumps is a turn."""
        return self._open is not None

    def pumped(self, frame: FrameType) -> None:
        """The frame's code has pumped, in no turn of another loop."""
        if self._open is None and sys.gettrace() is None:  # a debugger has another use for its frames
            try:
                self._look(frame)
            except ours():  # the program goes on
                return

    def begin(self) -> tuple[bool, bool]:
        """A call is about to pump, of a library whose loop brackets it; for `end`. The native engine."""
        in_turn: Callable[[], bool] = self._hooks.in_turn  # type: ignore[attr-defined] # the native engine's
        is_inside, was_open = in_turn(), self.is_open
        if was_open and not is_inside:  # Qt has noted that a window went, or that another loop has run
            self.over()
        self._inside += 1
        return is_inside, was_open

    def end(self, begun: tuple[bool, bool], frame: FrameType) -> None:
        """The same call, the frame's, has pumped."""
        is_inside, was_open = begun
        self._inside -= 1
        if not is_inside:
            self.pumped(frame)
        elif was_open and not self.is_open and not self._inside:
            self._hooks.wait_begin()  # a window went meanwhile

    def returned(self, mark: _Mark) -> None:
        """A function that has pumped returns."""
        if self._open is not None and self._open() in (None, mark):
            self._close()

    def over(self, *, ends_turn: bool = True) -> None:
        """A window is gone, or a loop of the toolkit's runs: pumps are counted anew."""
        self._round += 1
        if self._open is not None and ends_turn and not self._inside:
            self._close()
        self._open = None

    def _close(self) -> None:
        self._open = None
        self._hooks.wait_begin()

    def _look(self, pumping: FrameType) -> None:
        frame: FrameType | None = pumping
        found = None
        is_new = True  # what called this is not the call that pumped before
        owned = 0
        for _ in range(_FRAMES_MAX):
            if frame is None or owned == _OWN_MAX or (owned and not _is_own(frame)):
                break
            owned += _is_own(frame)
            mark = frame.f_trace
            if frame.f_code.co_flags & _IS_KEPT or not (mark is None or isinstance(mark, _Mark)):
                frame = frame.f_back  # or a debugger has a use for it
                continue
            was_there = isinstance(mark, _Mark)
            if not isinstance(mark, _Mark):
                frame.f_trace = mark = _Mark(self, threading.get_ident())
            if is_new and self._count(mark, frame.f_lasti) >= _PUMPS and owned:
                found = mark
            is_new = not was_there
            frame = frame.f_back
        if found is not None:
            self._open = weakref.ref(found)
            self._hooks.wait_end()

    def _count(self, mark: _Mark, place: int) -> int:
        if mark.round != self._round or len(mark.pumps) >= _PLACES_MAX:
            mark.round = self._round
            mark.pumps = {}
        mark.pumps[place] = mark.pumps.get(place, 0) + 1
        return mark.pumps[place]


_libraries: tuple[str, ...] = ()


def _is_own(frame: FrameType) -> bool:
    """Whether the code is the program's, not the standard library's, a package's or ours."""
    global _libraries  # noqa: PLW0603 - asked for by few programs, and then once
    if not _libraries:
        _libraries = ("<frozen ", *(folder + os.sep for folder in library_folders()))
    return not frame.f_code.co_filename.startswith(_libraries)
