"""Watched processes: versions, hosts, how they ended, own overhead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopcanary.late_dataclass import dataclass
from loopcanary.model import LoopHealth, Session, Stall, TracerStatus
from loopcanary.model.figures.tracers import TracerState, TracerStep
from loopcanary.model.search import IssueQuery, of_type
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.figures.loop_figures import LoopFigures, figures_of
from loopcanary.report.figures.open_stalls import with_open_stalls
from loopcanary.report.figures.watched import Watched
from loopcanary.ui.pages.groups import GroupRow, group_rows, programs_of
from loopcanary.ui.pages.overview import RequestRow, StackedTime, request_rows, stacked_time
from loopcanary.ui.pages.spread import POINTS_MAX, Spread, spread
from loopcanary.ui.tools import Tools
from loopcanary.words.guards import guard_words
from loopcanary.words.lives import tracer_words

LIMIT = 200
_LATEST = 50
_BUGS = 7
_WAITS_MS = (0, 1, 10, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)


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

    program: str | None
    """Only its runs; None: those of all."""
    programs: tuple[str, ...]
    rows: tuple[SessionRow, ...]
    more: int


def sessions_page(source: IssueStore, program: str | None, now_wall_ns: int) -> SessionsPage:
    """The processes of one program or, for None, of all; at most LIMIT of them."""
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
class WaitRow:
    """Events that wait for a time between two round ones."""

    words: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long events wait for one loop, shortest first."""

    thread: str
    rows: tuple[WaitRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """One process."""

    row: SessionRow
    bugs: int
    rows: tuple[GroupRow, ...]
    """Those that took most of its time."""
    chart: StackedTime | None
    """Over the whole run; None without a stall."""
    spread: Spread | None
    loops: tuple[tuple[LoopHealth, LoopFigures], ...]
    waits: tuple[Waits, ...]
    requests: tuple[RequestRow, ...]
    guards: tuple[str, ...]
    """What loopcanary did not report or had to switch off, in words."""
    latest: tuple[Stall, ...]
    tracers: tuple[TracerRow, ...]
    """Of a process that runs here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracerRow:
    """One tracer of a running process."""

    name: str
    words: str
    step: TracerStep | None
    """What it can be told; None: nothing."""


def session_page(source: IssueStore, session_id: str, tools: Tools, now_wall_ns: int) -> SessionPage | None:
    """None where there is no such session."""
    found = source.sessions(IssueQuery(session=session_id), 2)
    session = next((one for one in found if one.id == session_id), None)
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
        tracers=tuple(map(_tracer, tools.tracers(session) or ())),
    )


_CAN_BE = {
    TracerState.INITED: TracerStep.START,
    TracerState.STARTED: TracerStep.STOP,
    TracerState.STOPPED: TracerStep.START,
}


def _tracer(tracer: TracerStatus) -> TracerRow:
    step = None if tracer.failed is not None else _CAN_BE.get(tracer.state)
    return TracerRow(name=tracer.name, words=tracer_words(tracer), step=step)


def _waits(longer: Sequence[float]) -> Iterator[WaitRow]:
    """From the shares that wait longer than each of _WAITS_MS; without the lengths that none waits beyond."""
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
