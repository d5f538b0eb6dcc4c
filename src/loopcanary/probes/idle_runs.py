"""Idle functions that ask for themselves again each time they run, so that the loop never waits."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from loopcanary.model.figures import SPIN_NS, spin_told_after_ns

if TYPE_CHECKING:
    from loopcanary.protocols.tracing import IdleTrace

_BROKEN_NS = 100_000_000
_GAP_NS = 500_000
"""On average: what the loop does between two runs is no wait. Both as native/probes/qt/trace.c has them."""


class IdleRuns(threading.local):
    """The idle functions of one thread."""

    def __init__(self, trace: IdleTrace) -> None:
        self._trace = trace
        self._begin("", 0, 0)

    def _begin(self, name: str, begin_ns: int, end_ns: int) -> None:
        self._name = name
        self._begin_ns = begin_ns
        self._end_ns = end_ns
        self._runs = 1
        self._gaps = self._gaps_ns = 0
        self._limit_ns = SPIN_NS

    def ran(self, name: str, begin_ns: int, end_ns: int) -> None:
        """One has run: times of time.monotonic_ns()."""
        self._trace.ran(name, begin_ns, end_ns)
        gap_ns = begin_ns - self._end_ns
        if name != self._name or gap_ns >= _BROKEN_NS:
            if self._limit_ns > SPIN_NS and self._is_pauseless():
                self._tell()
            self._begin(name, begin_ns, end_ns)
            return
        self._end_ns = end_ns
        self._runs += 1
        self._gaps += 1
        self._gaps_ns += gap_ns
        took_ns = end_ns - self._begin_ns
        if took_ns > self._limit_ns:
            if not self._is_pauseless():
                self._begin(name, begin_ns, end_ns)
                return
            self._limit_ns = spin_told_after_ns(took_ns)
            self._gaps = self._gaps_ns = 0
            self._tell()

    def _is_pauseless(self) -> bool:
        return self._gaps_ns < self._gaps * _GAP_NS

    def _tell(self) -> None:
        self._trace.spun(self._name, self._begin_ns, self._end_ns, self._runs, are_counted=True)
