"""Figures of a loop that are quotients of others."""

from __future__ import annotations

from loopcanary.late_dataclass import dataclass
from loopcanary.model import LoopHealth
from loopcanary.report.figures.watched import HOUR_NS

_S = 1_000_000_000
_HOURLY_NS = 600 * _S


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopFigures:
    """None: not measured, or nothing to divide by."""

    stalls: int
    stalled_s_per_hour: float | None
    callbacks_per_s: float | None
    turns_per_s: float | None
    callback_weighted_ns: int | None
    congested: float | None
    """Share of the slices of 100 ms."""
    gc_ns: int | None
    run_queue: float | None
    """Share of the loop's life in which its thread was ready and not run."""


def stalled_share(loop: LoopHealth) -> float | None:
    """Of the time watched, where that is too short to say what an hour would bring; else None."""
    return loop.stalled_ns / loop.window_ns if 0 < loop.window_ns < _HOURLY_NS else None


def figures_of(loop: LoopHealth) -> LoopFigures:
    """The quotients of one loop."""
    window = loop.window_ns
    return LoopFigures(
        stalls=loop.stalls,
        stalled_s_per_hour=loop.stalled_ns / _S / (window / HOUR_NS) if window else None,
        callbacks_per_s=loop.callbacks / (window / _S) if window else None,
        turns_per_s=loop.turns / (window / _S) if window else None,
        callback_weighted_ns=loop.callback_weighted_ns,
        congested=loop.slices_congested / loop.slices if loop.slices else None,
        gc_ns=loop.gc_ns,
        run_queue=None if loop.run_queue_ns is None or not window else loop.run_queue_ns / window,
    )
