"""The Qt probe: PySide and PyQt, windows and services, on any of their event loops.

The work is done in C (native/probes/qt/loop.c): Qt delivers many thousands of events a second. This module
finds which Qt the program uses, and where its loops wait. For the tracers it reports what windows show, how
late their input is, and timers that never let the loop wait: C calls it for each drawn frame and input event,
and each second of a spinning timer, on the thread that handled it, when it is handled.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from loopcanary.probes import PollingProbe, loaded
from loopcanary.probes.event_stamps import EventStamps
from loopcanary.whose_exception import ours

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.protocols.loops import Windows
    from loopcanary.protocols.tracing import FrameTrace, Tracers


def address_of(binding: str, thing: Any) -> int:
    """Address of the C++ object that is behind one of Python's."""
    if binding.startswith("PySide"):
        return int(sys.modules[f"shiboken{binding[-1]}"].getCppPointer(thing)[0])
    return int(sys.modules[f"{binding}.sip"].unwrapinstance(thing))


def is_alive(binding: str, thing: Any) -> bool:
    if binding.startswith("PySide"):
        return bool(sys.modules[f"shiboken{binding[-1]}"].isValid(thing))
    return not sys.modules[f"{binding}.sip"].isdeleted(thing)


def is_made_by_python(binding: str, thing: Any) -> bool:
    """Whether Python code made it, and not Qt's own."""
    if binding.startswith("PySide"):
        return bool(sys.modules[f"shiboken{binding[-1]}"].createdByPython(thing))
    return bool(sys.modules[f"{binding}.sip"].ispycreated(thing))


_CHANGED_MARK = "[*]"
"""Where a title has a star while the document is changed (QWidget.windowModified)."""


class QtFront:
    """The front window of one application."""

    def __init__(self, binding: str, native: Native, windows: Windows) -> None:
        self._binding = binding
        self._native = native
        self._windows = windows
        self._last: weakref.ref[Any] | None = None
        self.scene: str | None = None
        """Of the window that was in front when last looked."""

    def look(self) -> None:
        """Another window may be in front, or have another title. Any thread."""
        if threading.get_ident() == threading.main_thread().ident:
            window = self.window()
            if window is not None:
                self._is_at(self._scene_of(window))
                self._last = weakref.ref(window)

    def window(self) -> Any:
        """The one in front: a widget, or a window of Quick's. Without focus: the one that had it, or any on
        the screen; None: there is none. The application's thread."""
        widgets = sys.modules.get(f"{self._binding}.QtWidgets")
        if widgets is not None and widgets.QApplication.instance() is not None:
            found = widgets.QApplication.activeWindow()
            if found is not None:
                return found
        gui = sys.modules.get(f"{self._binding}.QtGui")
        if gui is None:
            return None
        return gui.QGuiApplication.focusWindow() or self._shown(widgets, gui)

    def _shown(self, widgets: Any, gui: Any) -> Any:
        last = self._last() if self._last is not None else None
        if last is not None and _is_shown(last):
            return last
        tops = widgets.QApplication.topLevelWidgets() if widgets is not None else ()
        shown = next((top for top in tops if _is_shown(top)), None)
        return shown or next((top for top in gui.QGuiApplication.allWindows() if _is_shown(top)), None)

    def scene_of_drawn(self, window: Any) -> str | None:
        """The scene of a window that was drawn."""
        if window is None:
            return None
        scene = self._scene_of(window)
        if self.scene is None:
            self.look()  # nothing was activated since we came
            if self.scene is None:
                self._is_at(scene)
        return scene

    def close(self) -> None:
        self.scene = None
        self._native.set_title(None)

    def _scene_of(self, window: Any) -> str:
        title = window.windowTitle() if hasattr(window, "windowTitle") else window.title()
        return self._windows.scene_of(
            title.replace(_CHANGED_MARK, ""), window.objectName() or type(window).__name__
        )

    def _is_at(self, scene: str) -> None:
        self.scene = scene
        self._native.set_title(scene)


def _is_shown(window: Any) -> bool:
    try:
        return bool(window.isVisible())
    except RuntimeError:  # Qt's object is gone, the binding's is not
        return False


_STAMP_OFFSET = 24
"""Offset of the stamp in a QInputEvent; see native/probes/qt/trace.c."""
_PROBE = 0x1F2E3D4C


class Stamps:
    """The time stamps of one program's events."""

    def __init__(self, binding: str, address_of: Callable[[Any], int]) -> None:
        self._binding = binding
        self._address_of = address_of
        self._are_known: bool | None = None
        self._stamps = EventStamps()

    def arrival_ns(self, stamp: int, begin_ns: int) -> int:
        """When the event came, of time.monotonic_ns(); if that is not known, when its handling began."""
        if self._are_known is None:
            self._are_known = self._check()
        if not stamp or not self._are_known:
            return begin_ns
        return self._stamps.arrived_ns(stamp, begin_ns)

    def _check(self) -> bool:
        """Whether the stamp is at the expected offset."""
        gui, core = sys.modules.get(f"{self._binding}.QtGui"), sys.modules[f"{self._binding}.QtCore"]
        make = getattr(gui, "QKeyEvent", None)
        if make is None or not hasattr(make, "setTimestamp"):
            return False
        event = make(core.QEvent.Type.KeyPress, 0, core.Qt.KeyboardModifier(0))
        event.setTimestamp(_PROBE)
        return ctypes.c_uint64.from_address(self._address_of(event) + _STAMP_OFFSET).value == _PROBE


_TIMER = 1
_FRONT = 33  # WindowTitleChange, and what else puts another title in front
_DRAWING = frozenset({77, 206})  # UpdateRequest, Expose
_NAMES = {
    2: "MouseButtonPress",
    3: "MouseButtonRelease",
    4: "MouseButtonDblClick",
    5: "MouseMove",
    6: "KeyPress",
    7: "KeyRelease",
    31: "Wheel",
    87: "TabletMove",
    92: "TabletPress",
    93: "TabletRelease",
    194: "TouchBegin",
    195: "TouchUpdate",
    196: "TouchEnd",
}
_RATE_EVERY = 64
"""Frames between two looks at the screen's rate: a window may be moved to another screen."""


_TIMERS_MAX = 256
_LEVELS = 3


class _Surface:
    """A window that is drawn."""

    __slots__ = ("_is_valid", "_window", "address", "draws_itself", "frames", "is_python_s", "trace")

    def __init__(
        self,
        trace: FrameTrace,
        window: Any,
        address: int,
        is_valid: Callable[[Any], bool],
        *,
        is_python_s: bool,
    ) -> None:
        self.trace = trace
        self.address = address
        self.frames = 0
        self.is_python_s = is_python_s
        """Whether Python code made it: then the binding's object lives as long as the window. That of a QML
        window is made on request, and may be gone a moment later."""
        self.draws_itself = bool(window.inherits("QQuickWindow"))
        self._window = weakref.ref(window)
        self._is_valid = is_valid

    def window(self) -> Any:
        """The binding's object; None where it or Qt's is gone."""
        window = self._window()
        return window if window is not None and self._is_valid(window) else None


class QtTimers:
    """Names timers that run without a pause by where the program keeps them: `Window.poll`, or `poll` of the
    main script. Qt does not tell what a timer calls, nor which of Python's objects it is."""

    def __init__(self, binding: str) -> None:
        self._binding = binding
        self._known: dict[int, tuple[str, weakref.ref[Any]]] = {}

    def name_of(self, address: int) -> str | None:
        """Of what is at this address; None: it is not found where programs keep timers. The application's
        thread."""
        name, seen = self._known.get(address, (None, None))
        thing = seen() if seen is not None else None
        if thing is None or not self._is_at(thing, address):
            found = next((pair for pair in self._kept() if self._is_at(pair[1], address)), None)
            if found is None:
                return None
            name, thing = found
            if len(self._known) >= _TIMERS_MAX:
                self._known.clear()
            self._known[address] = name, weakref.ref(thing)
        return name

    def _is_at(self, thing: Any, address: int) -> bool:
        return is_alive(self._binding, thing) and address_of(self._binding, thing) == address

    def _kept(self) -> Iterator[tuple[str, Any]]:
        """The main script's variables, the windows, what is in their attributes, and in those of that."""
        kind = sys.modules[f"{self._binding}.QtCore"].QObject
        widgets = sys.modules.get(f"{self._binding}.QtWidgets")
        tops = widgets.QApplication.topLevelWidgets() if widgets is not None else ()
        named = list(vars(sys.modules["__main__"]).items())
        seen: set[int] = set()
        for found in (named, [(type(top).__qualname__, top) for top in tops]):
            level = found
            for _ in range(_LEVELS):
                level = [
                    pair for pair in level if issubclass(type(pair[1]), kind) and id(pair[1]) not in seen
                ]
                seen.update(id(thing) for _, thing in level)
                yield from level
                level = [
                    (f"{type(thing).__qualname__}.{attribute}", value)
                    for _, thing in level[:_TIMERS_MAX]
                    for attribute, value in list(vars(thing).items())
                ]


class QtTraces:
    """The traces of one binding."""

    def __init__(self, binding: str, tracers: Tracers, front: QtFront) -> None:
        self._front = front
        self._binding = binding
        self._tracers = tracers
        self._stamps = Stamps(binding, self._address)
        self._surfaces: dict[int, _Surface] = {}
        self._not_ours: set[int] = set()
        self._timers = QtTimers(binding)

    def heard(  # noqa: PLR0917 - as C calls it
        self, kind: int, name: str, receiver: int, begin_ns: int, end_ns: int, number: int, asked_ns: int
    ) -> None:
        """See qt_listen in native/probes/qt/qt.h. Raises nothing."""
        try:
            if kind in _DRAWING:
                self._drawn(receiver, asked_ns or begin_ns, end_ns, number)
            elif kind == _FRONT:
                self._front.look()
            elif kind == _TIMER:
                self._ran(f"{self._timers.name_of(receiver) or name}: Timer", begin_ns, end_ns, number)
            else:
                arrived_ns = self._stamps.arrival_ns(number, begin_ns)
                said = f"{name}: {_NAMES.get(kind, kind)}"
                self._tracers.input(KIND).handled(said, arrived_ns, begin_ns, end_ns, self._front.scene)
        except ours():  # the program's own handling goes on; what fails is left out
            return

    def close(self) -> None:
        surfaces, self._surfaces = self._surfaces, {}
        for surface in surfaces.values():
            surface.trace.close()
        self._front.close()

    # ---- frames ---------------------------------------------------------------------------------

    def _drawn(self, receiver: int, asked_ns: int, end_ns: int, painted: int) -> None:
        if not painted and receiver in self._not_ours:
            return
        window = self._window_of(receiver)
        surface = self._surfaces.get(receiver)
        if surface is None or (not painted and not surface.draws_itself):
            return
        if surface.frames % _RATE_EVERY == 0:
            surface.trace.at_refresh_rate(_refresh_rate(window))
        surface.frames += 1
        surface.trace.frame(asked_ns, end_ns, self._front.scene_of_drawn(window))

    def _window_of(self, receiver: int) -> Any:
        """The window that this receiver's events draw, which has a surface from now on; None: it is none of
        the program's. The caller holds it while it needs it."""
        surface = self._surfaces.get(receiver)
        window = surface.window() if surface is not None else None
        if window is not None:
            return window
        window = self._window_at(receiver)
        if surface is not None:
            if window is not None and not surface.is_python_s and self._address(window) == surface.address:
                return window
            self._forget(surface)
        return self._begin_surface(receiver, window)

    def _forget(self, surface: _Surface) -> None:
        surface.trace.close()
        self._surfaces = {where: each for where, each in self._surfaces.items() if each is not surface}

    def _begin_surface(self, receiver: int, window: Any) -> Any:
        if window is None:
            self._not_ours.add(receiver)
            if len(self._not_ours) > 256:
                self._not_ours.clear()
            return None
        self._not_ours.discard(receiver)
        address = self._address(window)
        known = next((each for each in self._surfaces.values() if each.address == address), None)
        if known is None or (known.is_python_s and known.window() is None):
            is_python_s = is_made_by_python(self._binding, window)
            trace = self._tracers.frames(KIND)
            known = _Surface(trace, window, address, self._is_alive, is_python_s=is_python_s)
        self._surfaces[receiver] = known  # a widget is drawn by events of its own and of its window's
        return window

    def _window_at(self, address: int) -> Any:
        """The top-level widget or window whose own address, or whose window's, this is."""
        widgets = sys.modules.get(f"{self._binding}.QtWidgets")
        if widgets is not None and threading.current_thread() is threading.main_thread():
            for widget in widgets.QApplication.topLevelWidgets():
                handle = widget.windowHandle()
                if address in (self._address(widget), self._address(handle) if handle is not None else 0):
                    return widget
        gui = sys.modules.get(f"{self._binding}.QtGui")
        windows = gui.QGuiApplication.allWindows() if gui is not None else ()
        return next((window for window in windows if self._address(window) == address), None)

    def _address(self, thing: Any) -> int:
        return address_of(self._binding, thing)

    def _is_alive(self, thing: Any) -> bool:
        return is_alive(self._binding, thing)

    # ---- input and idle work --------------------------------------------------------------------

    def _ran(self, name: str, begin_ns: int, end_ns: int, runs: int) -> None:
        trace = self._tracers.idle(KIND)
        if runs == 1:
            trace.ran(name, begin_ns, end_ns)
        else:
            trace.spun(name, begin_ns, end_ns, runs)


def _refresh_rate(window: Any) -> float:
    screen = window.screen() if window is not None else None
    return float(screen.refreshRate()) if screen is not None else 0.0


KIND = "qt"
BINDINGS = ("PySide6", "PyQt6", "PyQt5", "PySide2")
_GLIB = "libglib-2.0.so.0"


class QtProbe(PollingProbe):
    """Watches the application's thread, and threads in which Python code runs a loop of Qt's."""

    kind = KIND
    _engine: Native

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._tracers: Tracers | None = None
        self._windows: Windows | None = None
        self._traces: QtTraces | None = None
        self._waits: list[int | str] = []

    def use_tracers(self, tracers: Tracers) -> None:
        self._tracers = tracers

    def use_windows(self, windows: Windows) -> None:
        self._windows = windows

    def _take_back(self) -> None:
        self._engine.qt_listen(None)
        self._engine.qt_uninstall()
        while self._waits:
            self._engine.unhook_waits(self._waits.pop())
        traces, self._traces = self._traces, None
        if traces is not None:
            traces.close()
        super()._take_back()

    def _patch(self) -> None:
        binding = next(name for name in BINDINGS if f"{name}.QtCore" in sys.modules)
        core = sys.modules[f"{binding}.QtCore"]
        why_not = self._engine.qt_install(core.__file__ or "", self._loop_seen)
        if why_not is not None:
            self._notes.append(f"{binding}: events are not seen: {why_not}")
            return
        self._lay_pumps(core, binding)
        self._patches.hook("virtual tables of Qt's application and event dispatchers")
        # Which of the two a thread's dispatcher waits in depends on the platform and on QT_NO_GLIB.
        if not self._waits:
            for where in (_qt_core(), _GLIB):
                if where is not None and self._engine.hook_waits(where):
                    self._waits.append(where)
        if not self._waits:
            self._notes.append(f"{binding}: the loop's waits are not seen: turns are longer than they are")
        if self._tracers is not None and self._windows is not None and self._traces is None:
            front = QtFront(binding, self._engine, self._windows)
            self._traces = QtTraces(binding, self._tracers, front)
            self._engine.qt_listen(self._traces.heard)

    def _begin_pump(self) -> tuple[bool, bool] | None:
        """Windows are the main thread's. Another one's dispatcher may be of a class that is not hooked, and
        its pumps would not end a turn."""
        is_main = threading.get_ident() == threading.main_thread().ident
        return super()._begin_pump() if is_main else None

    def _lay_pumps(self, core: Any, binding: str) -> None:
        """PyQt calls a slot again, with fewer arguments, if it raised a TypeError in which no frame of
        Python's is: signals are connected to processEvents. PySide knows the slots that it calls: no bound
        method of anything but a function."""
        static: Callable[[Any], Any] = lambda original: staticmethod(self._pumping(original))  # noqa: E731
        bound: Callable[[Any], Any] = self._pumping
        if binding.startswith("PyQt"):
            static, bound = (partial(self._pumping_natively, is_bound=one) for one in (False, True))
        self._lay(core.QCoreApplication, "processEvents", static)
        self._lay(core.QEventLoop, "processEvents", bound)


def _qt_core() -> int | None:
    """Where the library itself is loaded: by which name it was, is not known where links lead to it."""
    return next((at for path, at in sorted(loaded("Core.so").items()) if "/libQt" in path), None)
