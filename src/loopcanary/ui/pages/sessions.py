"""Watched processes: versions, hosts, how they ended, own overhead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopcanary.late_dataclass import dataclass
from loopcanary.model import LoopHealth, Session, Stall
from loopcanary.model.search import IssueQuery, of_type
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.figures.loop_figures import LoopFigures, figures_of, with_open_stalls
from loopcanary.report.figures.watched import Watched
from loopcanary.ui.drawing import POINTS_MAX, Spread, spread
from loopcanary.ui.pages.groups import GroupRow, group_rows, programs_of
from loopcanary.ui.pages.overview import RequestRow, StackedTime, request_rows, stacked_time
from loopcanary.ui.sources import session_named
from loopcanary.ui.tools import Tools
from loopcanary.words.guards import guard_words

LIMIT = 200
_LATEST = 50
_BUGS = 7
_WAITS_MS = (0, 1, 10, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    session: Session
    length_ns: int
    stalls: int
    stalled_ns: int
    utilization: float | None
    """That of its busiest loop."""
    p99_ns: int | None
    """That of its worst loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsPage:
    program: str | None
    """None: the runs of all programs."""
    programs: tuple[str, ...]
    rows: tuple[SessionRow, ...]
    more: int


def sessions_page(source: IssueStore, program: str | None, now_wall_ns: int) -> SessionsPage:
    """The processes of a program or, for None, of all; at most LIMIT of them."""
    query = IssueQuery(program=program)
    marks = source.session_marks(query)
    sessions = source.sessions(query, LIMIT)
    return SessionsPage(
        program=program,
        programs=programs_of(source.session_marks(IssueQuery())),
        rows=tuple(session_row(with_open_stalls(source, session), now_wall_ns) for session in sessions),
        more=max(len(marks) - len(sessions), 0),
    )


def session_row(session: Session, now_wall_ns: int) -> SessionRow:
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
class WaitRow:
    """The share of events with a wait between two round times."""

    words: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """The waits for one loop, the shortest first."""

    thread: str
    rows: tuple[WaitRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    row: SessionRow
    bugs: int
    rows: tuple[GroupRow, ...]
    """The bugs that took most of its time."""
    chart: StackedTime | None
    """Stalled time over the run; None: it has no stall."""
    spread: Spread | None
    loops: tuple[tuple[LoopHealth, LoopFigures], ...]
    waits: tuple[Waits, ...]
    requests: tuple[RequestRow, ...]
    guards: tuple[str, ...]
    """Words about what loopcanary did not report or had to switch off."""
    latest: tuple[Stall, ...]


def session_page(source: IssueStore, session_id: str, tools: Tools, now_wall_ns: int) -> SessionPage | None:
    """None: there is no such session."""
    session = session_named(source, session_id)
    if session is None:
        return None
    session = with_open_stalls(source, session)
    query = IssueQuery(session=session_id).stalls
    sums = source.totals(query)
    rows = group_rows(source, query, source.groups(query, _BUGS), sums, source.remarks())
    latest = of_type(Stall, source.issues(query, POINTS_MAX))
    watched = Watched.by(source.session_marks(IssueQuery(session=session_id)), now_wall_ns)
    ended_wall_ns = max([sums.end_wall_ns or 0, *(end for _, end in watched.spans)])
    return SessionPage(
        row=session_row(session, now_wall_ns),
        bugs=sums.groups,
        rows=rows,
        chart=stacked_time(source, query, ended_wall_ns, [session.started_wall_ns], watched)
        if rows
        else None,
        spread=spread(
            latest,
            sums.issues,
            lambda: [(mark.began_wall_ns, mark.duration_ns) for mark in source.marks(query)],
        ),
        loops=tuple((loop, figures_of(loop)) for loop in session.loops),
        waits=tuple(
            Waits(thread=loop.thread, rows=waits)
            for loop in session.loops
            if (waits := tuple(_waits(tools.longer(loop, [ms * 1_000_000 for ms in _WAITS_MS]))))
        ),
        requests=request_rows([session]),
        guards=tuple(guard_words(session)),
        latest=tuple(latest[:_LATEST]),
    )


def _waits(longer: Sequence[float]) -> Iterator[WaitRow]:
    """Rows from the shares that wait longer than each of _WAITS_MS, up to the longest wait."""
    if not longer:
        return
    last = next((index for index, share in enumerate(longer) if share <= 0), len(longer))
    yield WaitRow(words="none", share=1.0 - longer[0])
    for index in range(1, last + 1):
        above = _round_words(_WAITS_MS[index - 1])
        if index == len(_WAITS_MS):
            yield WaitRow(words=f"over {above}", share=longer[-1])
        else:
            upto = _round_words(_WAITS_MS[index])
            words = f"up to {upto}" if index == 1 else f"{above} to {upto}"
            yield WaitRow(words=words, share=longer[index - 1] - longer[index])


def _round_words(ms: int) -> str:
    return f"{ms} ms" if ms < 1_000 else f"{ms // 1_000} s"
