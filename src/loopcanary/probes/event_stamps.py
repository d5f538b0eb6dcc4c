"""When an event came, from the milliseconds that its platform stamped it with.

X11's and Wayland's are those of the system's monotonic clock where the server runs on this host. Of any other
clock the difference to the monotonic one is the least that was seen: some event was handled as soon as it
came.
"""

from __future__ import annotations

_SAME_CLOCK_MS = 60_000
_WRAP_MS = 1 << 32
"""X11's stamps have 32 bits."""


class EventStamps:
    """The time stamps of one program's events."""

    def __init__(self) -> None:
        self._least_ms: int | None = None

    def arrived_ns(self, stamp_ms: int, now_ns: int) -> int:
        """When the event came, of time.monotonic_ns(); never later than now."""
        now_ms = now_ns // 1_000_000
        behind_ms = (now_ms - stamp_ms + _WRAP_MS // 2) % _WRAP_MS - _WRAP_MS // 2
        if not -1 <= behind_ms < _SAME_CLOCK_MS:
            self._least_ms = behind_ms if self._least_ms is None else min(self._least_ms, behind_ms)
            behind_ms -= self._least_ms
        return now_ns - max(0, behind_ms) * 1_000_000
