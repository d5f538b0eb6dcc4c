"""Which stalls that go on are to be reported now. Pure: time is an argument."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection

_S = 1_000_000_000
STAGES_NS = (1 * _S, 5 * _S, 30 * _S, 300 * _S)
"""A stall that goes on is reported when it has lasted this long: as a hang, as an ANR, and twice more."""
_AGAIN_NS = _S // 5
"""Until the next look at one whose time has come, and which is not a stall yet (its threshold is longer)."""


class Hangs:
    """The stalls of one process, by serial."""

    def __init__(self) -> None:
        self._told: dict[int, int] = {}
        """At how many stages each was reported."""

    def is_due(self, serial: int, begin_ns: int, now_ns: int) -> bool:
        """Whether it has come to a stage at which it was not reported yet."""
        return _stage(now_ns - begin_ns) > self._told.get(serial, 0)

    def tell(self, serial: int, lasted_ns: int) -> bool:
        """It has lasted this long, and is reported now; False where it was at this stage."""
        stage = _stage(lasted_ns)
        is_new = stage > self._told.get(serial, 0)
        self._told[serial] = max(stage, self._told.get(serial, 0))
        return is_new

    def knows(self, serial: int) -> bool:
        return serial in self._told

    def forget_all_but(self, serials: Collection[int]) -> None:
        """Forgets all other stalls: they are over."""
        self._told = {serial: stage for serial, stage in self._told.items() if serial in serials}

    def due_ns(self, serial: int, begin_ns: int, now_ns: int) -> int | None:
        """When to look at it again; None: it was reported at all stages."""
        if self.is_due(serial, begin_ns, now_ns):
            return now_ns + _AGAIN_NS
        stage = max(self._told.get(serial, 0), _stage(now_ns - begin_ns))
        return begin_ns + STAGES_NS[stage] if stage < len(STAGES_NS) else None


def _stage(lasted_ns: int) -> int:
    return bisect_right(STAGES_NS, lasted_ns)
