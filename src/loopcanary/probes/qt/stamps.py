"""When an input event of Qt's arrived, from the time stamp that its platform gave it, if that is found.

Its clock began with the application where it is not the system's (event_stamps).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

from loopcanary.probes.event_stamps import EventStamps

_STAMP_OFFSET = 24
"""In a QInputEvent; see native/probes/qt/trace.c."""
_PROBE = 0x1F2E3D4C


class Stamps:
    """Of one program's events."""

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
        """Whether the stamp is where it is thought to be."""
        gui, core = sys.modules.get(f"{self._binding}.QtGui"), sys.modules[f"{self._binding}.QtCore"]
        make = getattr(gui, "QKeyEvent", None)
        if make is None or not hasattr(make, "setTimestamp"):
            return False
        event = make(core.QEvent.Type.KeyPress, 0, core.Qt.KeyboardModifier(0))
        event.setTimestamp(_PROBE)
        return ctypes.c_uint64.from_address(self._address_of(event) + _STAMP_OFFSET).value == _PROBE
