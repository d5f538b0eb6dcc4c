"""Tk, by tkinter: grabs, and `after` calls that never let the loop be idle, which is when it draws."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from loopcanary.late_dataclass import dataclass
from loopcanary.model.issues import windows as names
from loopcanary.tracers.places import Places
from loopcanary.tracers.windows.watch import (
    HARMLESS,
    Harm,
    Hooks,
    LeftOn,
    WindowWatch,
    codes_inside,
    places_inside,
)

AWAITS = ("tkinter",)
_MANY_A_SECOND = 100
"""Calls of `after`: with fewer the loop is idle between them."""
_LINES_MAX = 256


@dataclass(slots=True)
class _Line:
    """One that calls `after`."""

    widget: weakref.ref[Any]
    places: Places
    calls: int = 0


class _TkThread:
    """The state of one thread's windows. That thread only."""

    def __init__(self, watch: WindowWatch) -> None:
        self.watch = watch
        self.lines: dict[tuple[CodeType, int], _Line] = {}
        """Since the last look."""
        self.idle: str | None = None
        """Tk's name for idle work that does nothing; it is gone when the loop was idle."""


class TkStates:
    """What is switched on in the windows of each thread."""

    kind = "tk"

    def __init__(
        self, watch: Callable[[], WindowWatch], hooks: Hooks, contain: Callable[[Any], object]
    ) -> None:
        """`contain` calls a function, so that nothing gets out."""
        self._watch = watch
        self._hooks = hooks
        self._contain = contain
        self._threads: dict[int, _TkThread] = {}

    def put_in(self) -> None:
        """Puts the hooks in: the module was imported."""
        tkinter = sys.modules["tkinter"]
        self._file = tkinter.__file__
        self._error = tkinter.TclError
        hook = self._hooks.observe
        hook(tkinter.Misc, "grab_set", self._grabbed)
        hook(tkinter.Misc, "grab_set_global", self._grabbed)
        hook(tkinter.Misc, "grab_release", lambda _, args: self._here().watch.off(id(args[0])))
        hook(tkinter.Misc, "after", self._after)

    def _here(self) -> _TkThread:
        thread = self._threads.get(threading.get_ident())
        if thread is None:
            thread = self._threads[threading.get_ident()] = _TkThread(self._watch())
        return thread

    def _grabbed(self, frame: FrameType, args: tuple[Any, ...]) -> None:
        thread, widget = self._here(), args[0]
        what = weakref.ref(widget)
        thread.watch.on(id(widget), names.TK_GRAB, what, lambda: places_inside(frame, self._is_loop))
        self._ask(thread, widget)

    def _after(self, frame: FrameType, args: tuple[Any, ...]) -> None:
        if len(args) < 3:  # it sleeps
            return
        thread, key = self._here(), (frame.f_code, frame.f_lineno or 0)
        line = thread.lines.get(key)
        if line is None:
            if len(thread.lines) >= _LINES_MAX:
                return
            line = thread.lines[key] = _Line(weakref.ref(args[0]), places_inside(frame, self._is_loop))
        line.calls += 1
        self._ask(thread, args[0])

    def _ask(self, thread: _TkThread, widget: Any) -> None:
        """A timer that is not a command of the program's, and not in what `after info` says."""
        if thread.watch.wants_look():
            what = weakref.ref(widget)
            try:
                widget.tk.createtimerhandler(
                    thread.watch.look_ms, lambda: self._contain(lambda: self._look(what))
                )
            except (RuntimeError, self._error):  # a window of another thread
                return

    def _look(self, asked: weakref.ref[Any]) -> None:
        thread, widget = self._here(), asked()
        lines, thread.lines = thread.lines, {}
        wants_more = thread.watch.look(self._harm, codes_inside(sys._getframe(), self._is_loop))
        calls = sum(line.calls for line in lines.values())
        if thread.idle is None and calls * 1_000 >= _MANY_A_SECOND * thread.watch.look_ms:
            self._suspect(thread, max(lines.values(), key=lambda line: line.calls))
            wants_more = True
        others = (one for one in (*thread.watch.things(), *(line.widget() for line in lines.values())))
        widget = next((one for one in (widget, *others) if one is not None), None)
        if wants_more and widget is not None:
            self._ask(thread, widget)

    def _suspect(self, thread: _TkThread, line: _Line) -> None:
        """Idle work waits for the loop to be idle, as what draws windows does."""
        widget = line.widget()
        try:
            idle = None if widget is None else str(widget.tk.call("after", "idle", ""))
        except (RuntimeError, self._error):  # its application is gone
            idle = None
        if idle is not None:
            thread.idle = idle
            thread.watch.on(names.AFTER_STORM, names.AFTER_STORM, line.widget, lambda: line.places)

    def _is_loop(self, frame: FrameType) -> bool:
        return frame.f_code.co_name == "mainloop" and frame.f_code.co_filename == self._file

    def _harm(self, state: LeftOn) -> Harm | None:
        widget = state.what()
        is_storm = state.blocked_by == names.AFTER_STORM
        try:
            found = None if widget is None else self._storm(state) if is_storm else self._grab(widget)
        except (RuntimeError, self._error):  # its window is gone
            found = None
        if is_storm and found is None:
            self._here().idle = None
        return found

    def _storm(self, state: LeftOn) -> Harm:
        tk = state.what().tk
        tk.call("after", "info", self._here().idle)  # TclError: the loop was idle
        state.times = len(tk.splitlist(tk.call("after", "info"))) - 1
        return Harm("Tk")

    def _grab(self, widget: Any) -> Harm | None:
        """Only where its window is not seen, and another one is: what is iconified misses nothing."""
        call, path = widget.tk.call, str(widget)
        if str(call("grab", "current", path)) != path:
            return None
        if call("winfo", "viewable", path) or not widget.tk.splitlist(call("wm", "stackorder", ".")):
            return HARMLESS
        return Harm(f"{type(widget).__name__} {path}")
