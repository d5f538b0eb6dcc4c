"""The Tk probe of the native engine: commands and loops as `portable` sees them, and what Tcl and Tk do
between them: waits, frames, the events of X (native/probes/tk/tk.c).
"""

from __future__ import annotations

import sys
import threading
from functools import wraps
from typing import TYPE_CHECKING, Any

from loopcanary.probes import PatchingProbe
from loopcanary.probes.tk.portable import PortableTkProbe
from loopcanary.whose_exception import ours, ours_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loopcanary._native import Native
    from loopcanary.protocols.loops import Windows
    from loopcanary.protocols.tracing import FrameTrace, Tracers


_EXTENSION = b"RANDR"


def refresh_rate_hz(screen: str) -> float | None:
    """Of the screen that X calls so, such as `:0.0`; None: it cannot be known.

    Only of a server on this host: the question takes some round trips on a connection of its own. It is one
    request without a monitor's number: of a monitor that is gone Xlib makes an error that ends the program.
    """
    if not screen.removeprefix("unix").startswith(":"):
        return None
    try:
        import ctypes  # only where Tk draws

        x11, randr = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXrandr.so.2")
    except ours_of(ImportError, OSError):
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_ulong
    x11.XOpenDisplay.restype, x11.XOpenDisplay.argtypes = pointer, (ctypes.c_char_p,)
    x11.XCloseDisplay.argtypes = (pointer,)
    x11.XQueryExtension.argtypes = (pointer, ctypes.c_char_p, pointer, pointer, pointer)
    x11.XDefaultRootWindow.restype, x11.XDefaultRootWindow.argtypes = number, (pointer,)
    randr.XRRGetScreenInfo.restype, randr.XRRGetScreenInfo.argtypes = pointer, (pointer, number)
    randr.XRRConfigCurrentRate.restype, randr.XRRConfigCurrentRate.argtypes = ctypes.c_short, (pointer,)
    randr.XRRFreeScreenConfigInfo.argtypes = (pointer,)
    display = x11.XOpenDisplay(screen.encode())
    if not display:
        return None
    codes = (ctypes.c_int * 3)()
    where = [ctypes.byref(codes, at * ctypes.sizeof(ctypes.c_int)) for at in range(3)]
    try:
        # A server without the extension has libXrandr follow a null pointer.
        if not x11.XQueryExtension(display, _EXTENSION, *where):
            return None
        return _current_rate(randr, display, x11.XDefaultRootWindow(display))
    finally:
        x11.XCloseDisplay(display)


def _current_rate(randr: Any, display: int, root: int) -> float | None:
    config = randr.XRRGetScreenInfo(display, root)
    if not config:
        return None
    rate = randr.XRRConfigCurrentRate(config)
    randr.XRRFreeScreenConfigInfo(config)
    return float(rate) if rate > 0 else None


_PAUSE_INTERVALS = 3
"""Refreshes. Tcl does not wait while something is to be drawn: a loop that waited longer had nothing."""
_UNKNOWN_HZ = 60.0
_PARENTS_MAX = 64


class _Thread:
    """One thread that runs Tk: all its windows together."""

    __slots__ = ("front", "is_sure", "is_told", "pause_ns", "scene", "trace")

    def __init__(self) -> None:
        self.trace: FrameTrace | None = None
        self.pause_ns = 0
        self.front = "."
        self.is_sure = False
        """The window in front was on the screen when it was looked for."""
        self.scene: str | None = None
        self.is_told = False
        """A listener hears of frames: it may have others drawn."""


class TkWindows:
    """The windows of all threads."""

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
        thread = self._threads.setdefault(threading.get_ident(), _Thread())
        if thread.is_told:
            return
        thread.is_told = True
        try:
            if widget is not None and (look or (frames and not thread.is_sure)):
                self._look(thread, widget.tk)
            if frames:
                self._drawn(thread, widget, frames)
        except ours():  # a window that is being destroyed is no reason to fail
            return
        finally:
            thread.is_told = False

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


class TkProbe(PortableTkProbe):
    """Also joins a mainloop() that runs already."""

    _engine: Native

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._windows = TkWindows(self._engine)

    def use_tracers(self, tracers: Tracers) -> None:
        super().use_tracers(tracers)
        self._windows.use(tracers=tracers)

    def use_windows(self, windows: Windows) -> None:
        """Titles are asked for. Called before `install`."""
        self._windows.use(windows=windows)

    def notes(self) -> Sequence[str]:
        return PatchingProbe.notes(self)

    def _take_back(self) -> None:
        super()._take_back()
        self._engine.tk_end()
        self._windows.close()

    def _patch(self) -> None:
        tkinter, patches = sys.modules["tkinter"], self._patches
        patches.hook("Tcl's event sources")
        library = getattr(sys.modules.get("_tkinter"), "__file__", None)
        self._sees_waits, sees_frames = self._engine.tk_learn(library)
        if not self._sees_waits:
            self._notes.append("tk: Tcl's functions are hidden in this build; each callback counts as a turn")
        if not sees_frames:
            self._notes.append("tk: frames are not seen: what Tk draws with cannot be hooked in this build")
        super()._patch()
        patches.put(tkinter.Misc, "update_idletasks", self._drawing)
        for name in ("wm_title", "title"):
            patches.put(tkinter.Wm, name, self._titling)
        if self._is_in_mainloop():
            self._enter(None)

    def _shown(self, in_command: bool) -> Any:
        return self._engine.tk_shown(in_command)

    def _entered(self, widget: Any, shown: Any) -> None:
        is_new, look, frames = shown
        if is_new:
            self._here.runs_tcl = True
            self._contain(self._loop_seen)
            self._contain(self._adopt)
        self._windows.heard(widget, look, frames)

    def _updated(self, widget: Any) -> None:
        self._engine.tk_updated()
        self._enter(widget)

    def _served(self) -> tuple[int, int, int] | None:
        return self._engine.tk_input()

    def _scene(self) -> str | None:
        return self._windows.scene()

    def _drawing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """An update_idletasks() that draws a frame of its own."""

        @wraps(original)
        def update_idletasks(self_: Any) -> Any:
            result = original(self_)
            if self._here.runs_tcl:
                self._updated(self_)
            return result

        return update_idletasks

    def _titling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def title(widget: Any, *args: Any, **names: Any) -> Any:
            result = original(widget, *args, **names)
            if self._here.runs_tcl and (args or names):
                self._windows.heard(widget, True, ())
            return result

        return title
