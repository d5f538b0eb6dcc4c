"""The first page: which line stalls most, why, what to do; and how the loops are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from loopcanary.late_dataclass import dataclass
from loopcanary.model import InputFigures, LoopHealth, SceneFrames, Session, Stall
from loopcanary.model.search import OTHERS, STALLS, IssueQuery, of_type, time_in_cells
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.figures.gains import Loops, gain_words, own_share
from loopcanary.report.figures.loop_figures import LoopFigures, figures_of, with_open_stalls
from loopcanary.report.figures.watched import Watched
from loopcanary.ui.drawing import TimeScale, round_scale
from loopcanary.ui.pages.code import CodeView, code_of, holder_code
from loopcanary.ui.pages.groups import GroupRow, group_rows, ignored_in
from loopcanary.ui.tools import Tools
from loopcanary.words.frames import requests_of

_TOP = 7
_SESSIONS = 50
_LOOPS = 12
_SCENES = 8
_CELLS_MIN = 20
_CELLS = 60
_CAUSES = 6
SPOT_AROUND = 2
"""Lines around that of the first bug."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spotlight:
    """The bug that takes most time."""

    row: GroupRow
    worst: Stall | None
    code: CodeView | None
    holder: CodeView | None
    gains: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRow:
    session: Session
    loop: LoopHealth
    figures: LoopFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneRow:
    session: Session
    scene: SceneFrames


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    session: Session
    figures: InputFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseTime:
    cause: str
    total_ns: int
    cells_ns: tuple[int, ...]
    shares: tuple[float, ...]
    """Shares of the watched time in each cell, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedTime:
    """Stalled time by cause over time, most first; the smaller causes are one, `other`."""

    scale: TimeScale
    causes: tuple[CauseTime, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StallFigures:
    """Figures of all stalls, loops and scenes, for the overview and a report in one file."""

    stalls: int
    groups: int
    total_ns: int
    watched: str
    """The watched time in words; empty: none."""
    last_wall_ns: int | None
    sessions: int
    killed: int
    top: Spotlight | None
    chart: StackedTime | None
    loops: tuple[LoopRow, ...]
    requests: tuple[RequestRow, ...]
    scenes: tuple[SceneRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewPage(StallFigures):
    running: tuple[Session, ...]
    ongoing: tuple[Stall, ...]
    rows: tuple[GroupRow, ...]
    ignored: int
    issues: int


def overview_page(source: IssueStore, tools: Tools, ongoing: Sequence[str], now_wall_ns: int) -> OverviewPage:
    """The overview of all that is stored and runs. `ongoing` are the ids of stalls that go on."""
    query = STALLS
    sums = source.totals(query)
    sessions = [with_open_stalls(source, session) for session in source.sessions(query, _SESSIONS)]
    marks = source.session_marks(query)
    watched = Watched.by(marks, now_wall_ns)
    remarks = source.remarks()
    ignored = ignored_in(source, query, remarks)
    found = [group for group in source.groups(query, _TOP + len(ignored)) if group.fingerprint not in ignored]
    rows = group_rows(source, query, found[:_TOP], sums, remarks)
    newest = of_type(Stall, source.issues(query, 1))
    going_on = of_type(Stall, map(source.issue, ongoing))
    return OverviewPage(
        stalls=sums.issues,
        groups=sums.groups,
        total_ns=sums.total_ns,
        watched=watched.words if watched.total_ns else "",
        last_wall_ns=newest[0].began_wall_ns if newest else None,
        sessions=len(marks),
        killed=sum(mark.killed for mark in marks),
        running=tuple(session for session in sessions if session.is_running),
        ongoing=tuple(going_on),
        top=spotlight(source, rows[0], tools, sessions) if rows else None,
        rows=rows,
        ignored=len(ignored),
        chart=stacked_time(
            source, query, sums.end_wall_ns, [group.first_wall_ns for group in found], watched
        ),
        loops=loop_rows(sessions),
        requests=request_rows(sessions),
        scenes=scene_rows(sessions),
        issues=source.totals(OTHERS).issues,
    )


def spotlight(source: IssueStore, row: GroupRow, tools: Tools, sessions: Sequence[Session]) -> Spotlight:
    group = row.group
    worst = next(iter(of_type(Stall, [source.issue(group.worst_id)])), None)
    marks = source.marks(STALLS, [group.fingerprint])
    gains = Loops(sessions, tools.delays).gains(marks, own_share(source, STALLS, group.fingerprint))
    return Spotlight(
        row=row,
        worst=worst,
        code=code_of(group, worst, source, tools, SPOT_AROUND),
        holder=holder_code(worst, source, tools, SPOT_AROUND),
        gains=tuple(gain_words(gains)),
    )


def scene_rows(sessions: Sequence[Session]) -> tuple[SceneRow, ...]:
    """The newest scenes that have frames."""
    rows = (
        SceneRow(session=session, scene=scene)
        for session in sessions
        for scene in session.traces.frames
        if scene.figures.frames
    )
    return tuple(islice(rows, _SCENES))


def request_rows(sessions: Sequence[Session]) -> tuple[RequestRow, ...]:
    rows = (RequestRow(session=one, figures=figures) for one in sessions for figures in requests_of(one))
    return tuple(islice(rows, _LOOPS))


def loop_rows(sessions: Sequence[Session]) -> tuple[LoopRow, ...]:
    """Running loops first, then the newest."""
    rows = [
        LoopRow(session=session, loop=loop, figures=figures_of(loop))
        for session in sessions
        for loop in session.loops
        if loop.turns
    ]
    return tuple(sorted(rows, key=lambda row: not row.session.is_running)[:_LOOPS])


def stacked_time(
    source: IssueStore, query: IssueQuery, end_wall_ns: int | None, begins: Sequence[int], watched: Watched
) -> StackedTime | None:
    """Stalled time by cause, from the first of `begins` or of the watched time to the end of the last stall;
    None without a stall."""
    if end_wall_ns is None:
        return None
    first = min([end_wall_ns, *begins, *(begin for begin, _ in watched.spans[:1])])
    scale = round_scale(first, end_wall_ns, least=_CELLS_MIN, most=_CELLS)
    found: dict[str, list[int]] = {}
    for cell in source.time_cells(
        query, "cause", begin_wall_ns=scale.begin_wall_ns, step_ns=scale.step_ns, cells=scale.cells
    ):
        cells = found.setdefault(cell.key, [0] * scale.cells)
        if 0 <= cell.cell < scale.cells:
            cells[cell.cell] += cell.total_ns
    ranked = sorted(found, key=lambda cause: (-sum(found[cause]), cause))
    # One that is left has a name of its own.
    several = _CAUSES if len(ranked) > _CAUSES + 1 else len(ranked)
    shown = {cause: found[cause] for cause in ranked[:several]}
    if rest := ranked[several:]:
        shown["other"] = _columns(found[cause] for cause in rest)
    # Two loops of one process can stall at once.
    whole = list(map(max, _watched_in(scale, watched), _columns(found.values())))
    return StackedTime(
        scale=scale,
        causes=tuple(
            CauseTime(
                cause=cause,
                total_ns=sum(cells),
                cells_ns=tuple(cells),
                shares=tuple(ns / of if of else 0.0 for ns, of in zip(cells, whole, strict=True)),
            )
            for cause, cells in shown.items()
        ),
    )


def _columns(rows: Iterable[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]


def _watched_in(scale: TimeScale, watched: Watched) -> list[int]:
    cells = [0] * scale.cells
    for span in watched.spans:
        for cell, length_ns in time_in_cells(span, scale.begin_wall_ns, scale.step_ns, scale.cells):
            cells[cell] += length_ns
    return cells
