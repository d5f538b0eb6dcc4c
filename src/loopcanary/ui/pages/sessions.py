"""Watched processes: versions, hosts, how they ended, own overhead."""

from __future__ import annotations

from dataclasses import dataclass

from loopcanary.model import LoopHealth, Session, Stall
from loopcanary.model.search import IssueQuery, of_type
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.figures.loop_figures import LoopFigures, figures_of
from loopcanary.report.figures.open_stalls import with_open_stalls
from loopcanary.ui.pages.overview import RequestRow, request_rows
from loopcanary.words.guards import guard_words

LIMIT = 200
_LATEST = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One process in the list."""

    session: Session
    length_ns: int
    stalls: int
    stalled_ns: int
    utilization: float | None
    """Of its busiest loop."""
    p99_ns: int | None
    """The worst of its loops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsPage:
    """What the template shows, newest first."""

    rows: tuple[SessionRow, ...]
    more: int


def sessions_page(source: IssueStore, now_wall_ns: int) -> SessionsPage:
    """All processes, at most LIMIT of them."""
    marks = source.session_marks(IssueQuery())
    sessions = source.sessions(IssueQuery(), LIMIT)
    return SessionsPage(
        rows=tuple(session_row(with_open_stalls(source, session), now_wall_ns) for session in sessions),
        more=max(len(marks) - len(sessions), 0),
    )


def session_row(session: Session, now_wall_ns: int) -> SessionRow:
    """One process in short."""
    loops = [loop for loop in session.loops if loop.turns]
    end = now_wall_ns if session.ended_wall_ns is None else session.ended_wall_ns
    return SessionRow(
        session=session,
        length_ns=max(end - session.started_wall_ns, 0),
        stalls=sum(loop.stalls for loop in loops),
        stalled_ns=sum(loop.stalled_ns for loop in loops),
        utilization=max((loop.utilization for loop in loops), default=None),
        p99_ns=max((loop.delay_p99_ns for loop in loops), default=None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """One process."""

    row: SessionRow
    loops: tuple[tuple[LoopHealth, LoopFigures], ...]
    requests: tuple[RequestRow, ...]
    guards: tuple[str, ...]
    """What loopcanary did not report or had to switch off, in words."""
    latest: tuple[Stall, ...]


def session_page(source: IssueStore, session_id: str, now_wall_ns: int) -> SessionPage | None:
    """None where there is no such session."""
    found = source.sessions(IssueQuery(session=session_id), 2)
    session = next((one for one in found if one.id == session_id), None)
    if session is None:
        return None
    session = with_open_stalls(source, session)
    return SessionPage(
        row=session_row(session, now_wall_ns),
        loops=tuple((loop, figures_of(loop)) for loop in session.loops),
        requests=request_rows([session]),
        guards=tuple(guard_words(session)),
        latest=tuple(of_type(Stall, source.issues(IssueQuery(session=session_id).stalls, _LATEST))),
    )
