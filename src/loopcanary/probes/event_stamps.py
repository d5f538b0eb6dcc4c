"""How late an event came, from the milliseconds that its platform stamped it with.

X11's and Wayland's are those of the system's monotonic clock where the server runs on this host. Of any other
clock the difference to the monotonic one is the least that was seen: some event was handled as soon as it
came.
"""

from __future__ import annotations

_PLAUSIBLE_MS = 60_000
_WRAP = 1 << 32
"""X11's stamps have 32 bits."""


class EventStamps:
    """Of one program's events."""

    def __init__(self) -> None:
        self._least_ms: int | None = None

    def late_ms(self, stamp: int, now_ms: int) -> int:
        """How long before `now_ms`, of the monotonic clock, the event came."""
        of_the_monotonic_clock = (now_ms - stamp) % _WRAP
        if self._least_ms is None and of_the_monotonic_clock < _PLAUSIBLE_MS:
            return of_the_monotonic_clock
        difference = now_ms - stamp
        if self._least_ms is None or difference < self._least_ms:
            self._least_ms = difference
        return difference - self._least_ms
