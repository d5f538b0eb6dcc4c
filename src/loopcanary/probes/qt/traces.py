"""What Qt's windows show, how late their input is, and timers that never let the loop wait, for the tracers.

Called from C for each drawn frame and input event, and each second of a spinning timer, on the thread that
handled it, when it is handled.
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any

from loopcanary.probes.qt.bindings import address_of, is_alive, is_made_by_python
from loopcanary.probes.qt.stamps import Stamps

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopcanary.probes.qt.front import QtFront
    from loopcanary.protocols.tracing import FrameTrace, Tracers

KIND = "qt"
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


class QtTraces:
    """Of one binding."""

    def __init__(self, binding: str, tracers: Tracers, front: QtFront) -> None:
        self._front = front
        self._binding = binding
        self._tracers = tracers
        self._stamps = Stamps(binding, self._address)
        self._surfaces: dict[int, _Surface] = {}
        self._not_ours: set[int] = set()

    def heard(  # noqa: PLR0917 - as C calls it
        self, kind: int, name: str, receiver: int, begin_ns: int, end_ns: int, number: int, asked_ns: int
    ) -> None:
        """See qt_listen in native/probes/qt/trace.h. Raises nothing."""
        try:
            if kind in _DRAWING:
                self._drawn(receiver, asked_ns or begin_ns, end_ns, number)
            elif kind == _FRONT:
                self._front.look()
            elif kind == _TIMER:
                self._ran(f"{name}: Timer", begin_ns, end_ns, number)
            else:
                arrived_ns = self._stamps.arrival_ns(number, begin_ns)
                said = f"{name}: {_NAMES.get(kind, kind)}"
                self._tracers.input(KIND).handled(said, arrived_ns, begin_ns, end_ns, self._front.scene)
        except Exception:  # noqa: BLE001 - the program's own handling goes on; what fails is left out
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
