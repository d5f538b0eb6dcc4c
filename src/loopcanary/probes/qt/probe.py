"""The Qt probe: PySide and PyQt, windows and services, on any of their event loops.

The work is done in C (native/probes/qt/loop.c): Qt delivers many thousands of events a second. This module
finds which Qt the program uses, and where its loops wait. `traces` reports frames and input.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from loopcanary.probes import PatchingProbe
from loopcanary.probes.qt.front import QtFront
from loopcanary.probes.qt.traces import QtTraces

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.protocols.loops import Windows
    from loopcanary.protocols.tracing import Tracers

KIND = "qt"
BINDINGS = ("PySide6", "PyQt6", "PyQt5", "PySide2")
_GLIB = "libglib-2.0.so.0"


class QtProbe(PatchingProbe):
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

    def _patch(self) -> None:
        binding = next(name for name in BINDINGS if f"{name}.QtCore" in sys.modules)
        core = sys.modules[f"{binding}.QtCore"]
        why_not = self._engine.qt_install(core.__file__ or "", self._loop_seen)
        if why_not is not None:
            self._notes.append(f"{binding}: events are not seen: {why_not}")
            return
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


def _qt_core() -> int | None:
    """Where the library itself is loaded: by which name it was, is not known where links lead to it."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:  # noqa: PTH123
            lines = [line for line in maps if "Core.so" in line]
    except OSError:
        return None
    places = sorted((line.split(maxsplit=5)[-1], int(line.partition("-")[0], 16)) for line in lines)
    return next((address for path, address in places if "/libQt" in path), None)
