"""Figures of a loop: quotients, and stalls that never ended, which its lane does not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loopcanary.late_dataclass import dataclass
from loopcanary.model import LoopHealth, Session, SessionEnd, Stall, StallState
from loopcanary.model.search import IssueQuery, of_type
from loopcanary.protocols.stores import IssueStore
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
    """The share of the watched time; None if that is long enough for a rate per hour."""
    return loop.stalled_ns / loop.window_ns if 0 < loop.window_ns < _HOURLY_NS else None


def figures_of(loop: LoopHealth) -> LoopFigures:
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


_LATEST = 4
"""An open stall is the last one of its loop."""


def with_open_stalls(source: IssueStore, session: Session) -> Session:
    """The session with its open stalls counted: those it was killed in, or that go on now."""
    if session.end is SessionEnd.EXIT or not session.loops:
        return session
    latest = of_type(Stall, source.issues(IssueQuery(session=session.id).stalls, _LATEST))
    still = [stall for stall in latest if stall.session == session.id and stall.state is not StallState.ENDED]
    if not still:
        return session
    return replace(session, loops=tuple(_with(loop, still) for loop in session.loops))


def _with(loop: LoopHealth, still: Sequence[Stall]) -> LoopHealth:
    own = [stall.duration_ns for stall in still if (stall.thread, stall.loop) == (loop.thread, loop.kind)]
    return replace(loop, stalls=loop.stalls + len(own), stalled_ns=loop.stalled_ns + sum(own))
