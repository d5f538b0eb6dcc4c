"""How late the input of GTK's windows is, and which window is in front: reported to the tracers, and as the
thread's scene.

Called from C (native/probes/glib/input.h) on the windows' thread when an event has been handled: once a key,
a button, a turn of the wheel, a touch, and when another window may be in front. Nothing is raised.
"""

from __future__ import annotations

import sys
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from loopcanary.probes.event_stamps import EventStamps

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.protocols.loops import Windows
    from loopcanary.protocols.tracing import Tracers

_KIND = "glib"
_PARTIALS_MAX = 8


class GtkWindows:
    """Of one program; GTK has one thread."""

    def __init__(self, native: Native, tracers: Tracers, windows: Windows) -> None:
        self._native = native
        self._tracers = tracers
        self._windows = windows
        self._stamps = EventStamps()
        self._last: weakref.ref[Any] | None = None
        self._scene: str | None = None

    def heard(  # noqa: PLR0917 - as C calls it
        self, event: str, stamp_ms: int, begin_ns: int, end_ns: int, signal: str | None, handler: object
    ) -> None:
        """See glib_listen in native/probes/glib/input.h. Raises nothing."""
        try:
            if event:
                arrived_ns = self._stamps.arrived_ns(stamp_ms, begin_ns) if stamp_ms else begin_ns
                name = event if signal is None else f"{signal}: {_name_of(handler)} ({event})"
                trace = self._tracers.input(_KIND)
                trace.handled(name, arrived_ns, begin_ns, end_ns, self._scene)
            self._look()
        except Exception:  # noqa: BLE001 - the program's own handling goes on; what fails is left out
            return

    def close(self) -> None:
        self._scene = None
        self._native.set_title(None)

    def _look(self) -> None:
        window = self._front()
        if window is not None:
            self._last = weakref.ref(window)
            scene = self._windows.scene_of(window.get_title() or "", type(window).__name__)
            if scene != self._scene:
                self._scene = scene
                self._native.set_title(scene)

    def _front(self) -> Any:
        """The window in front. Without focus: the one that had it, or any on the screen; None: none is."""
        window = sys.modules["gi.repository.Gtk"].Window
        tops = [top for top in window.list_toplevels() if isinstance(top, window) and top.get_visible()]
        active = next((top for top in tops if top.is_active()), None)
        if active is not None:
            return active
        last = self._last() if self._last is not None else None
        return last if any(top is last for top in tops) else next(iter(tops), None)


def _name_of(handler: object) -> str:
    for _ in range(_PARTIALS_MAX):
        if not isinstance(handler, partial):  # others may have any attribute, and one that never ends
            break
        handler = handler.func
    return str(getattr(handler, "__qualname__", type(handler).__qualname__))
