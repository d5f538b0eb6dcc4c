"""The GLib probe, for programs on PyGObject: turns seen by the poll function of main contexts, callbacks of
timeout and idle sources and of handlers of signals by their functions (native/probes/glib).
"""

from __future__ import annotations

import sys
import weakref
from functools import partial, wraps
from types import MethodType
from typing import TYPE_CHECKING, Any

from loopcanary.probes import ImportWatch, PollingProbe
from loopcanary.probes.event_stamps import EventStamps
from loopcanary.whose_exception import ours

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopcanary._native import Native
    from loopcanary.protocols.loops import Windows
    from loopcanary.protocols.tracing import Tracers


_GI = "gi"
"""Where the types of GTK's own functions are."""

_SOURCES = (
    # Function of GLib, kind of source, at which place its function is.
    ("idle_add", "idle", 0),
    ("timeout_add", "timeout", 1),
    ("timeout_add_seconds", "timeout", 1),
)


class GLibProbe(PollingProbe):
    """Watches the loops that run on any thread from their next run on."""

    kind = "glib"
    _engine: Native

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._tracers: Tracers | None = None
        self._windows: Windows | None = None
        self._gtk: GtkWindows | None = None
        self._idle: Any = None
        self._signals: str | None = None
        self._watches = (
            ImportWatch("gi.overrides.Gio", lambda: self._contain(self._patch_gio)),
            ImportWatch("gi.overrides.Gtk", lambda: self._contain(self._patch_gtk)),
        )

    def use_tracers(self, tracers: Tracers) -> None:
        """Idle work is reported to `tracers`. Called before `install`."""
        self._tracers = tracers

    def use_windows(self, windows: Windows) -> None:
        self._windows = windows

    def _take_back(self) -> None:
        self._take_back_copies()
        super()._take_back()
        self._engine.glib_unhook()
        self._engine.glib_listen(None, 0)
        gtk, self._gtk = self._gtk, None
        if gtk is not None:
            gtk.close()
        if self._signals is not None:
            self._engine.glib_unhook_signals(self._signals)

    def _patch(self) -> None:
        self._patches.hook("poll function of GLib's main contexts, signals of GTK")
        if not self._engine.glib_hook():
            self._notes.append("glib: no libglib-2.0.so.0 is loaded; each callback counts as a turn")
        self._signals = getattr(sys.modules.get("gi._gi"), "__file__", None)
        if self._signals is None or not self._engine.glib_hook_signals(self._signals):
            self._notes.append("glib: PyGObject's connect cannot be hooked; signals' handlers have no names")
        overrides = sys.modules["gi.overrides.GLib"]
        boxed = getattr(sys.modules.get("gi._gi"), "Boxed", None)
        self._put(overrides.MainLoop, "run", partial(self._run, boxed=boxed))
        iteration = partial(self._run, boxed=boxed, is_context=True)
        self._put(overrides.MainContext, "iteration", lambda original: self._pumping(iteration(original)))
        for name, way, place in _SOURCES:
            # Before its overrides are copied into gi.repository.GLib there is nothing else to patch.
            for module in (overrides, sys.modules.get("gi.repository.GLib")):
                if module is not None:
                    self._put(module, name, partial(self._adding, way=way, place=place))

    def _patch_gio(self) -> None:
        self._put(sys.modules["gi.overrides.Gio"].Application, "run", self._run)

    def _patch_gtk(self) -> None:
        """Patches GTK 3's own loop and modal dialogs, which GTK 4 has not; input and windows of both."""
        overrides = sys.modules["gi.overrides.Gtk"]
        self._put(getattr(overrides, "Dialog", None), "run", self._run)
        for module in (overrides, sys.modules.get("gi.repository.Gtk")):
            self._put(module, "main", self._run)
        # The module and the class make these when they are asked for; the first two are GTK 3's.
        for name in ("main_iteration", "main_iteration_do"):
            self._lay(overrides.Gtk, name, lambda original: self._pumping(self._run(original)))
        for name in ("destroy", "close", "hide"):
            self._lay(overrides.Window, name, self._closing)
        if self._is_on and self._tracers is not None and self._windows is not None:
            self._gtk = GtkWindows(self._engine, self._tracers, self._windows)
            version = str(getattr(sys.modules.get("gi.repository.Gtk"), "_version", ""))
            if not self._engine.glib_listen(self._gtk.heard, int(version.partition(".")[0] or 0)):
                self._notes.append(f"glib: input and windows of GTK {version} are not seen")

    def _put(self, owner: Any, name: str, make: Callable[[Any], object]) -> None:
        if self._is_on and owner is not None:
            self._patches.put(owner, name, make)

    def _take_back_copies(self) -> None:
        """PyGObject copies its overrides into the module that programs see, ours among them."""
        for namespace, names in (("GLib", [name for name, _, _ in _SOURCES]), ("Gtk", ["main"])):
            overrides = sys.modules.get(f"gi.overrides.{namespace}")
            shown = sys.modules.get(f"gi.repository.{namespace}")
            if overrides is None or shown is None:
                continue
            for name in names:
                ours = vars(overrides).get(name)
                original = getattr(ours, "__wrapped__", None)
                if original is not None and vars(shown).get(name) is ours:
                    setattr(shown, name, original)

    def _run(self, original: object, *, boxed: object = None, is_context: bool = False) -> Any:
        return self._engine.glib_run(original, self._seen, boxed, is_context)

    def _seen(self) -> None:
        self._contain(self._loop_seen)

    def _adding(self, original: Callable[..., Any], *, way: str, place: int) -> object:
        """A function that adds sources, which hands on the program's function in a bracket."""
        ran = self._ran if way == "idle" else None
        engine = self._engine

        @wraps(original)
        def add(*args: Any, **options: Any) -> Any:
            # One of GTK's own, such as `window.close`, has no name that could be read, and would hide that
            # of the handler that it calls.
            if len(args) > place and callable(args[place]) and not _is_of_gtk(args[place]):
                bracketed = engine.glib_source(args[place], way, ran, partial)
                args = (*args[:place], bracketed, *args[place + 1 :])
            return original(*args, **options)

        return add

    def _ran(self, function: object, begin_ns: int, end_ns: int) -> None:
        if self._tracers is None:
            return
        if self._idle is None:
            from loopcanary.probes.idle_runs import IdleRuns  # few programs have idle functions

            self._idle = IdleRuns(self._tracers.idle("glib"))
        name = getattr(function, "__qualname__", None) or type(function).__qualname__
        self._idle.ran(f"idle: {name}", begin_ns, end_ns)


def _is_of_gtk(function: Any) -> bool:
    """From PyGObject 3.58 on a function of GTK's is bound by a method of Python's."""
    inner = function.__func__ if type(function) is MethodType else function
    return type(inner).__module__ == _GI


_KIND = "glib"
_PARTIALS_MAX = 8


class GtkWindows:
    """The windows of one program; GTK has one thread."""

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
        """See glib_listen in native/probes/glib/glib.h. Raises nothing."""
        try:
            if event:
                arrived_ns = self._stamps.arrived_ns(stamp_ms, begin_ns) if stamp_ms else begin_ns
                name = event if signal is None else f"{signal}: {_name_of(handler)} ({event})"
                trace = self._tracers.input(_KIND)
                trace.handled(name, arrived_ns, begin_ns, end_ns, self._scene)
            self._look()
        except ours():  # the program's own handling goes on; what fails is left out
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
