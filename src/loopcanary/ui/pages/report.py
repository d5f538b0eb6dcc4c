"""A report as one page by itself: bugs with all their evidence, loops, frames, sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from loopcanary.document.times import moment
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, Stall, StallState
from loopcanary.model.search import IssueGroup, IssueQuery, Remark, SessionMark, of_type
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.figures.affected import Affected, affected
from loopcanary.report.figures.gains import gain_words
from loopcanary.report.figures.trend import trend_words
from loopcanary.report.model import Report, build
from loopcanary.ui.pages.code import CodeView, code_of, holder_code
from loopcanary.ui.pages.earlier import EarlierView, earlier_view
from loopcanary.ui.pages.flame import Flame, flame, holding_flame
from loopcanary.ui.pages.groups import GroupRow, group_rows
from loopcanary.ui.pages.overview import (
    SPOT_AROUND,
    Spotlight,
    StallFigures,
    loop_rows,
    request_rows,
    scene_rows,
    stacked_time,
)
from loopcanary.ui.pages.sessions import SessionRow, session_row
from loopcanary.ui.pages.timeline import TimelineView, timeline_view
from loopcanary.ui.tools import Tools
from loopcanary.words.text import printable

_FLAME_STALLS = 50
"""The latest stalls of each bug; its longest is read, too. There may be 100,000."""
_FLAME_NODES = 1_000
_LATEST = 5
_PROGRAMS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BugPart:
    """A bug, with the field names of its own page."""

    row: GroupRow
    group: IssueGroup
    worst: Stall | None
    code: CodeView | None
    holder: CodeView | None
    """The line of the thread that held the GIL or lock."""
    trend: str
    gains: tuple[str, ...]
    affected: Affected
    flame: Flame
    holding: Flame | None
    """The flame of the threads that held the GIL or lock."""
    timeline: TimelineView | None
    """The timeline of its longest stall."""
    earlier: EarlierView | None
    """The work before its longest stall."""
    latest: tuple[Stall, ...]
    remark: Remark


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuePart:
    """A bug of another kind than stalls."""

    group: IssueGroup
    worst: Issue


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    bugs: int
    stalls: int
    total_ns: int
    sessions: int
    killed: int
    """The number of killed ones among these sessions."""
    issues: int
    """The number of bugs of other kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage(StallFigures):
    generated_wall_ns: int
    programs: tuple[str, ...]
    chosen: tuple[str, ...]
    """The query in words; empty: all that is stored."""
    alarms: tuple[Stall, ...]
    """The longest stalls that go on, or in which a process was killed."""
    bugs: tuple[BugPart, ...]
    issues: tuple[IssuePart, ...]
    session_rows: tuple[SessionRow, ...]
    left_out: LeftOut

    @property
    def finds_nothing(self) -> bool:
        return not self.stalls and not self.issues


def report_page(
    source: IssueStore, query: IssueQuery, tools: Tools, *, limit: int, now_wall_ns: int
) -> ReportPage:
    """The page of what the query finds: at most `limit` bugs, sessions and other issues; 0: all."""
    report = build(source, query, limit=limit, now_wall_ns=now_wall_ns, delays=tools.delays)
    remarks = source.remarks()
    rows = group_rows(source, query.stalls, report.groups, report.sums, remarks)
    bugs = tuple(_bug(source, query, tools, report, row) for row in rows)
    marks = source.session_marks(query)
    newest = next(iter(report.stalls), None)
    return ReportPage(
        generated_wall_ns=now_wall_ns,
        programs=tuple(dict.fromkeys(mark.name for mark in marks if mark.name))[:_PROGRAMS],
        chosen=tuple(query_words(query)),
        stalls=report.sums.issues,
        groups=report.sums.groups,
        total_ns=report.sums.total_ns,
        watched=report.watched.words if report.watched.total_ns else "",
        last_wall_ns=None if newest is None else newest.began_wall_ns,
        sessions=len(marks),
        killed=sum(mark.killed for mark in marks),
        alarms=tuple(
            bug.worst for bug in bugs if bug.worst is not None and bug.worst.state is not StallState.ENDED
        ),
        top=_spotlight(source, tools, bugs[0]) if bugs else None,
        bugs=bugs,
        chart=stacked_time(
            source,
            query.stalls,
            report.sums.end_wall_ns,
            [one.first_wall_ns for one in report.groups],
            report.watched,
        ),
        loops=loop_rows(report.sessions),
        requests=request_rows(report.sessions),
        scenes=scene_rows(report.sessions),
        issues=tuple(
            IssuePart(group=group, worst=worst)
            for group in report.issue_groups
            if (worst := report.worst.get(group.fingerprint)) is not None
        ),
        session_rows=tuple(session_row(session, now_wall_ns) for session in report.sessions),
        left_out=_left_out(report, marks),
    )


def _left_out(report: Report, marks: Sequence[SessionMark]) -> LeftOut:
    return LeftOut(
        bugs=report.sums.groups - len(report.groups),
        stalls=report.sums.issues - sum(group.count for group in report.groups),
        total_ns=report.sums.total_ns - sum(group.total_ns for group in report.groups),
        sessions=max(len(marks) - len(report.sessions), 0),
        killed=sum(mark.killed for mark in marks[len(report.sessions) :]),
        issues=report.issue_places - len(report.issue_groups),
    )


def _bug(source: IssueStore, query: IssueQuery, tools: Tools, report: Report, row: GroupRow) -> BugPart:
    group = row.group
    worst = next(iter(of_type(Stall, [report.worst.get(group.fingerprint)])), None)
    own = replace(query, fingerprint=group.fingerprint).stalls
    latest = of_type(Stall, source.issues(own, _FLAME_STALLS))
    figures = report.figures.get(group.fingerprint)
    with_worst = {stall.id: stall for stall in [*latest, *([worst] if worst is not None else [])]}
    return BugPart(
        row=row,
        group=group,
        worst=worst,
        code=code_of(group, worst, source, tools),
        holder=holder_code(worst, source, tools),
        trend=trend_words(figures.trend) if figures is not None else "",
        gains=tuple(gain_words(figures.gains)) if figures is not None else (),
        affected=affected(latest),
        flame=flame(with_worst.values(), _FLAME_NODES),
        holding=holding_flame(with_worst.values(), _FLAME_NODES),
        timeline=timeline_view(worst) if worst is not None else None,
        earlier=earlier_view(worst) if worst is not None else None,
        latest=tuple(latest[:_LATEST]),
        remark=row.remark,
    )


def _spotlight(source: IssueStore, tools: Tools, bug: BugPart) -> Spotlight:
    return Spotlight(
        row=bug.row,
        worst=bug.worst,
        code=code_of(bug.group, bug.worst, source, tools, SPOT_AROUND),
        holder=holder_code(bug.worst, source, tools, SPOT_AROUND),
        gains=bug.gains,
    )


def query_words(query: IssueQuery) -> Iterator[str]:
    if query.since_wall_ns is not None:
        yield f"since {moment(query.since_wall_ns)}"
    if query.until_wall_ns is not None:
        yield f"until {moment(query.until_wall_ns)}"
    if query.causes:
        yield f"cause {' or '.join(sorted(cause.value for cause in query.causes))}"
    for word in query.words:
        yield f"text {printable(word, 60)}"
    if query.program is not None:
        yield f"program {printable(query.program, 60)}"
    if query.session is not None:
        yield f"run {printable(query.session, 60)}"
    if query.fingerprint is not None:
        yield f"bug {printable(query.fingerprint, 60)}"
