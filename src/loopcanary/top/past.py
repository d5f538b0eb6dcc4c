"""Readings of the last seconds: what a loop does now is the difference of two readings of its counters."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from loopcanary.model import LaneTotals
from loopcanary.model.live import LaneReading, ProcessReading

RECENT_NS = 10_000_000_000
"""The window of loop delays: a p99 of one second is one turn."""

LaneKey = tuple[str, int, int]
"""Process, lane, and how often the lane was given out."""


def key_of(process: ProcessReading, lane: LaneReading) -> LaneKey:
    return process.key, lane.totals.lane, lane.totals.generation


class Past:
    """Earlier readings of every lane, as many as lie in RECENT_NS."""

    def __init__(self) -> None:
        self._readings: dict[LaneKey, deque[tuple[int, LaneReading]]] = {}

    def last(self, key: LaneKey) -> tuple[int, LaneReading] | None:
        known = self._readings.get(key)
        return known[-1] if known else None

    def first(self, key: LaneKey) -> tuple[int, LaneReading] | None:
        """The oldest reading that is recent."""
        known = self._readings.get(key)
        return known[0] if known else None

    def add(self, processes: Sequence[ProcessReading]) -> None:
        """Keeps these readings; forgets old ones and lanes that are gone."""
        kept: dict[LaneKey, deque[tuple[int, LaneReading]]] = {}
        for process in processes:
            for lane in process.lanes:
                if lane.totals.closed_ns is not None:
                    continue
                key = key_of(process, lane)
                readings = self._readings.get(key, deque())
                readings.append((process.at_ns, lane))
                while readings[0][0] < process.at_ns - RECENT_NS:
                    readings.popleft()
                kept[key] = readings
        self._readings = kept


def busy_ns(totals: LaneTotals, at_ns: int) -> int:
    """The lane's busy time at a moment, with the turn that goes on."""
    since = totals.busy_since_ns
    return totals.busy_ns + (max(at_ns - since, 0) if since is not None else 0)


def utilization_between(earlier: LaneTotals, from_ns: int, later: LaneTotals, at_ns: int) -> float | None:
    """The share of busy time between two readings; None if there is no time between them."""
    if at_ns <= from_ns:
        return None
    gained = busy_ns(later, at_ns) - busy_ns(earlier, from_ns)
    return min(max(gained / (at_ns - from_ns), 0.0), 1.0)


def between(earlier: LaneTotals, from_ns: int, later: LaneTotals, at_ns: int) -> LaneTotals:
    """The sums between two readings, as of a lane that was opened at the first.

    A turn that went on at the first reading and has ended since counts in full, for the time between at most.
    """
    window_ns = max(at_ns - from_ns, 0)
    before = dict(earlier.histogram)
    turns: dict[int, int] = {}
    for upper_ns, count in later.histogram:
        gained = count - before.get(upper_ns, 0)
        if gained > 0:
            at_most_ns = min(upper_ns, window_ns)
            turns[at_most_ns] = turns.get(at_most_ns, 0) + gained
    longest_ns = max(turns, default=0)
    if later.longest_turn_ns > earlier.longest_turn_ns:
        longest_ns = min(later.longest_turn_ns, window_ns)
    since = later.busy_since_ns
    return replace(
        later,
        opened_ns=from_ns,
        turns=max(later.turns - earlier.turns, 0),
        callbacks=max(later.callbacks - earlier.callbacks, 0),
        busy_ns=max(later.busy_ns - earlier.busy_ns, 0),
        busy_ns_squared=max(later.busy_ns_squared - earlier.busy_ns_squared, 0),
        longest_turn_ns=longest_ns,
        histogram=tuple(sorted(turns.items())),
        busy_since_ns=None if since is None else max(since, from_ns),
    )
