"""What Tk's windows show, and which window is in front: reported to the tracers, and as the thread's scene.

Called from C (native/probes/tk/frames.h) where tkinter may be called: before a command, after update().
Nothing is raised.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from loopcanary.probes.tk.screen import refresh_rate_hz

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopcanary._native import Native
    from loopcanary.protocols.loops import Windows
    from loopcanary.protocols.tracing import FrameTrace, Tracers

_PAUSE_INTERVALS = 3
"""Refreshes. Tcl does not wait while something is to be drawn: a loop that waited longer had nothing."""
_UNKNOWN_HZ = 60.0
_PARENTS_MAX = 64


class _Thread:
    """One thread that runs Tk: all its windows together."""

    __slots__ = ("front", "is_sure", "pause_ns", "scene", "trace")

    def __init__(self) -> None:
        self.trace: FrameTrace | None = None
        self.pause_ns = 0
        self.front = "."
        self.is_sure = False
        """The window in front was on the screen when it was looked for."""
        self.scene: str | None = None


class TkWindows:
    """Of all threads."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._tracers: Tracers | None = None
        self._windows: Windows | None = None
        self._threads: dict[int, _Thread] = {}

    def use(self, tracers: Tracers | None = None, windows: Windows | None = None) -> None:
        """Frames are reported to them from now on, and titles asked for. Called before any event."""
        self._tracers = tracers or self._tracers
        self._windows = windows or self._windows

    def heard(self, widget: Any, look: bool, frames: Sequence[tuple[int, int, int]]) -> None:
        """Frames (waited, asked, drawn, in ns), and whether focus or a title may be another than it was."""
        try:
            thread = self._threads.setdefault(threading.get_ident(), _Thread())
            if widget is not None and (look or (frames and not thread.is_sure)):
                self._look(thread, widget.tk)
            if frames:
                self._drawn(thread, widget, frames)
        except Exception:  # noqa: BLE001 - a window that is going is no reason to fail
            return

    def scene(self) -> str | None:
        """The calling thread's, from its window in front."""
        thread = self._threads.get(threading.get_ident())
        return None if thread is None else thread.scene

    def close(self) -> None:
        threads, self._threads = self._threads, {}
        for thread in threads.values():
            if thread.trace is not None:
                thread.trace.close()
        self._native.set_title(None)

    # ---- frames ---------------------------------------------------------------------------------

    def _drawn(self, thread: _Thread, widget: Any, frames: Sequence[tuple[int, int, int]]) -> None:
        if self._tracers is None:
            return
        trace = thread.trace
        if trace is None:
            hertz = _rate_of(widget)
            trace = thread.trace = self._tracers.frames("tk", hertz)
            thread.pause_ns = int(_PAUSE_INTERVALS * 1e9 / hertz)
        for waited_ns, asked_ns, drawn_ns in frames:
            if waited_ns >= thread.pause_ns:
                trace.idle()
            trace.frame(min(asked_ns, drawn_ns), drawn_ns, thread.scene)

    # ---- the window in front --------------------------------------------------------------------

    def _look(self, thread: _Thread, tk: Any) -> None:
        if self._windows is None:
            return
        thread.is_sure = False  # also where this fails: the window is going, and the next call may fail
        front = _window_in_front(tk, thread.front)
        thread.is_sure = front is not None
        thread.front = front or thread.front
        title = str(tk.call("wm", "title", thread.front))
        scene = self._windows.scene_of(title, str(tk.call("winfo", "class", thread.front)))
        if scene != thread.scene:
            thread.scene = scene
        self._native.set_title(scene)


def _window_in_front(tk: Any, before: str) -> str | None:
    """The window with the focus; without focus, the one that had it, or any on the screen."""
    focus = str(tk.call("focus"))
    others = [name for name in (before, ".") if name != focus]
    for name in [focus, *others] if focus else others:
        top = _top(tk, name)
        if top is not None and tk.getboolean(tk.call("winfo", "viewable", top)):
            return top
    children = tk.splitlist(tk.call("winfo", "children", "."))
    tops = [str(name) for name in children if str(tk.call("winfo", "toplevel", name)) == str(name)]
    return next((top for top in tops if tk.getboolean(tk.call("winfo", "viewable", top))), None)


def _top(tk: Any, name: str) -> str | None:
    """The window that a widget is in. For a menu or a box that unfolds, which the window manager does not
    know: the window that it belongs to."""
    if not tk.getboolean(tk.call("winfo", "exists", name)):
        return None
    top = str(tk.call("winfo", "toplevel", name))
    for _ in range(_PARENTS_MAX):
        if top == "." or not tk.getboolean(tk.call("wm", "overrideredirect", top)):
            break
        top = str(tk.call("winfo", "toplevel", tk.call("winfo", "parent", top)))
    return top


def _rate_of(widget: Any) -> float:
    if widget is None:
        return _UNKNOWN_HZ
    return refresh_rate_hz(str(widget.tk.call("winfo", "screen", "."))) or _UNKNOWN_HZ
