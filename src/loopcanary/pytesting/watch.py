"""The watch over the tests of one process: gives the stalls since it was last asked."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import loopcanary
from loopcanary.model import Stall

_NOT_OUTCOMES = frozenset(
    {
        "stalls_recorded",
        "stalls_unsampled",
        "stalls_at_startup",
        "stalls_suppressed_expected",
        "stalls_dropped_no_slot",
        "stalls_dropped_ring_full",
    }
)
"""Counts beside a stall's outcome, and counts of stalls that are not judged: the backend does not count these
as ended."""
_PATIENCE_S = 10.0
"""A verdict takes some milliseconds, on a busy machine more."""
_LOOK_S = 0.002


class TestsWatch:
    """The engine of this process, used by the thread of the tests."""

    def __init__(self, threshold_ns: int, store: str | None) -> None:
        self._threshold_ns = threshold_ns
        self._store = store
        self._own_folder: str | None = None
        self._canary: Any = None
        self._known: set[str] = set()
        self._lost = 0
        """The number of stalls that were recorded and never judged."""
        self._ended = 0
        """The number of stalls that had ended when all were judged."""

    def start(self) -> None:
        """ConfigError: a setting of the environment or of a file is wrong."""
        if self._store is None:
            self._own_folder = self._own_folder or tempfile.mkdtemp(prefix="loopcanary-tests-")
        self._canary = loopcanary.install(
            threshold=f"{self._threshold_ns}ns",
            store=str(Path(self._store or self._own_folder or "").absolute()),
            console="auto",  # notices are printed, stalls are not
            keeper=False,
            follow_children=False,
        )
        if self._canary is not None:
            # None yet; it waits until the drain has loaded the diagnosis, which is to slow down no test.
            self._known.update(stall.id for stall in self._canary.stalls)

    def use(self, threshold_ns: int) -> None:
        if self._canary is not None and threshold_ns != self._threshold_ns:
            loopcanary.uninstall()
            self._threshold_ns, self._lost, self._ended = threshold_ns, 0, 0
            self.start()

    def stop(self) -> None:
        loopcanary.uninstall()
        if self._own_folder is not None:
            shutil.rmtree(self._own_folder, ignore_errors=True)

    def new_stalls(self) -> list[Stall]:
        """Waits until all stalls are judged; returns those that ended since the last call, oldest first."""
        if self._canary is None or not self._settle():
            return []
        new = [stall for stall in self._canary.stalls if stall.id not in self._known]
        self._known.update(stall.id for stall in new)
        return new

    def _settle(self) -> bool:
        """Waits for the verdicts; returns whether there may be new stalls."""
        if self._count() == self._ended:  # asked at each phase of each test, so it has to be cheap
            return False
        patient_until = time.monotonic() + _PATIENCE_S
        while True:
            self._ended = self._count()
            missing = self._ended - self._lost - _outcomes(self._canary.statistics())
            if missing <= 0:
                return True
            if time.monotonic() > patient_until:
                self._lost += missing
                return True
            time.sleep(_LOOK_S)

    def _count(self) -> int:
        backend = self._canary.backend
        return 0 if backend is None else backend.stalls_ended()


def _outcomes(statistics: Mapping[str, Any]) -> int:
    """The number of judged stalls, reported or dropped."""
    counts = (
        count
        for name, count in statistics.items()
        if name.startswith("stalls_") and name not in _NOT_OUTCOMES
    )
    return sum(counts)
