"""One reading after the other: what a screen, or a script, asks for rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from loopcanary.model.live import ProcessReading
from loopcanary.top.past import Past
from loopcanary.top.rows import Health, LaneRow, rows


class RowReader:
    """Reads processes, and remembers what differences need. Not thread-safe."""

    def __init__(
        self,
        read: Callable[[], Sequence[ProcessReading]],
        health: Health,
        now_wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._read = read
        self._health = health
        self._now_wall_ns = now_wall_ns
        self._past = Past()

    def look(self) -> list[LaneRow]:
        processes = self._read()
        found = rows(processes, self._past, self._health, self._now_wall_ns())
        self._past.add(processes)
        return found
