"""When an input event arrived, from the time stamp that its platform gave it.

A stamp counts milliseconds: of the system's monotonic clock with X11 and Wayland, of a clock that began with
the application elsewhere. For that one, and for any other, the difference to the monotonic clock is the
least that was seen: some event was handled as soon as it came.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_STAMP_OFFSET = 24
"""In a QInputEvent; see native/module/qt_trace.c."""
_PROBE = 0x1F2E3D4C
_MS = 1_000_000
_PLAUSIBLE_MS = 60_000
_WRAP = 1 << 32
"""X11's stamps have 32 bits."""


class Stamps:
    """Of one program's events."""

    def __init__(self, binding: str, address_of: Callable[[Any], int]) -> None:
        self._binding = binding
        self._address_of = address_of
        self._are_known: bool | None = None
        self._least_ms: int | None = None

    def arrival_ns(self, stamp: int, begin_ns: int) -> int:
        """When the event came, of time.monotonic_ns(); where nobody can say, when its handling began."""
        if self._are_known is None:
            self._are_known = self._check()
        if not stamp or not self._are_known:
            return begin_ns
        late_ms = self._late_ms(stamp, begin_ns // _MS)
        return begin_ns - late_ms * _MS

    def _late_ms(self, stamp: int, now_ms: int) -> int:
        of_the_monotonic_clock = (now_ms - stamp) % _WRAP
        if self._least_ms is None and of_the_monotonic_clock < _PLAUSIBLE_MS:
            return of_the_monotonic_clock
        difference = now_ms - stamp
        if self._least_ms is None or difference < self._least_ms:
            self._least_ms = difference
        return difference - self._least_ms

    def _check(self) -> bool:
        """Whether the stamp is where it is thought to be."""
        gui, core = sys.modules.get(f"{self._binding}.QtGui"), sys.modules[f"{self._binding}.QtCore"]
        make = getattr(gui, "QKeyEvent", None)
        if make is None or not hasattr(make, "setTimestamp"):
            return False
        event = make(core.QEvent.Type.KeyPress, 0, core.Qt.KeyboardModifier(0))
        event.setTimestamp(_PROBE)
        return ctypes.c_uint64.from_address(self._address_of(event) + _STAMP_OFFSET).value == _PROBE
