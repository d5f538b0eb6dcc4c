"""Stalls that never ended, in the figures of their loops: a lane counts a stall when it is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loopcanary.model import LoopHealth, Session, SessionEnd, Stall, StallState
from loopcanary.model.search import IssueQuery, of_type
from loopcanary.protocols.stores import IssueStore

_LATEST = 4
"""Such a stall is the last one of its loop."""


def with_open_stalls(source: IssueStore, session: Session) -> Session:
    """The session with the stalls that were going on when it was killed, or go on now, counted."""
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
