"""A report before it has a form: what was asked for and what the store answered."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field, replace
from typing import TYPE_CHECKING

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Stall
from loopcanary.model.search import IssueQuery, Totals, of_type
from loopcanary.report.figures.affected import EXAMINED, affected
from loopcanary.report.figures.loops import Gains, Loops
from loopcanary.report.figures.open_stalls import with_open_stalls
from loopcanary.report.figures.own_share import own_share
from loopcanary.report.figures.trend import Trend, trend
from loopcanary.report.figures.watched import NEVER, Watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from loopcanary.model import Issue, LagIssue, Session
    from loopcanary.model.search import IssueGroup, IssueMark, SessionMark
    from loopcanary.protocols.stores import IssueStore
    from loopcanary.report.figures.affected import Affected
    from loopcanary.report.figures.loops import Delays

    Explain = Callable[[Issue, Sequence[Stall]], tuple[str, ...]]
    """What an issue's fingerprint is made of, each part as `name=value`; the stalls are those in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the stalls of one group show together."""

    trend: Trend
    gains: Gains


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """More about the one bug or issue that a report is about."""

    parts: tuple[str, ...]
    """What its fingerprint is made of, each as `name=value`; empty where that cannot be shown."""
    stalls: Mapping[str, Stall]
    """By id: the stalls in the issue that is shown in full, as far as they are kept."""
    history: tuple[IssueMark, ...] = ()
    """All issues of the bug in short, oldest first."""
    affected: Affected | None = None
    """Of a bug of stalls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Groups first, then stalls; both may be cut, `sums` has all."""

    generated_wall_ns: int
    sums: Totals
    """Of stalls."""
    sessions: Sequence[Session]
    groups: Sequence[IssueGroup]
    worst: Mapping[str, Issue]
    """The longest issue of each group shown, of every kind, by fingerprint."""
    stalls: Sequence[Stall]
    issues: Sequence[LagIssue] = ()
    """Issues of other kinds."""
    issue_groups: Sequence[IssueGroup] = ()
    issue_places: int = 0
    """How many groups of these there are, however few of them are in the report."""
    watched: Watched = NEVER
    """The time of all sessions that the query finds."""
    figures: Mapping[str, Figures] = field(default_factory=dict)
    """Of each group shown, by fingerprint."""
    about: IssueGroup | Issue | None = None
    """The one bug or issue that was asked for; None: the report is about all that is stored."""
    details: Details | None = None
    stores: Sequence[Path] = ()
    """What was read, to be named to people."""
    is_filtered: bool = False
    """Only a part was asked for: the numbers of its bugs are not those of the whole store."""

    @property
    def is_empty(self) -> bool:
        return self.sums.issues == 0

    @property
    def finds_nothing(self) -> bool:
        """Neither a stall nor another issue was found."""
        return self.is_empty and not self.issue_groups


def build(
    source: IssueStore,
    query: IssueQuery,
    *,
    limit: int,
    now_wall_ns: int,
    with_worst: bool = True,
    delays: Delays | None = None,
    stores: Sequence[Path] = (),
) -> Report:
    """The report of what the query finds: at most `limit` groups, stalls and sessions; 0: all.

    `with_worst`: also the longest stall of each group, in full. `delays`: for what a group's end would
    bring to the loops of the sessions in the report. `stores`: the folders that the source reads.
    """
    # First: what of them cannot be read is in no sum then.
    stalls = of_type(Stall, source.issues(query.stalls, limit))
    issues = others_of(source.issues(query.others, limit))
    groups = source.groups(query.stalls, limit)
    issue_groups = source.groups(query.others, limit)
    ids = [group.worst_id for group in (*groups, *issue_groups)] if with_worst else []
    worst = [issue for issue in map(source.issue, ids) if issue is not None]
    sessions = [with_open_stalls(source, session) for session in source.sessions(query, limit)]
    marks = source.session_marks(query)
    return Report(
        generated_wall_ns=now_wall_ns,
        sums=source.totals(query.stalls),
        sessions=sessions,
        groups=groups,
        worst={issue.fingerprint: issue for issue in worst},
        stalls=stalls,
        issues=issues,
        issue_groups=issue_groups,
        issue_places=source.totals(query.others).groups,
        watched=_watched(marks, query, now_wall_ns),
        figures=_figures(
            source.marks(query.stalls, [group.fingerprint for group in groups]),
            _Programs(marks, query, now_wall_ns),
            Loops(sessions, delays),
            lambda fingerprint: own_share(source, query, fingerprint),
        ),
        stores=stores,
        is_filtered=query != IssueQuery(),
    )


def of_bug(
    source: IssueStore,
    fingerprint: str,
    *,
    limit: int,
    now_wall_ns: int,
    explain: Explain,
    delays: Delays | None = None,
) -> Report | None:
    """The report of one bug, with the sessions of the issues shown; None: there is no such bug."""
    query = IssueQuery(fingerprint=fingerprint)
    report = build(source, query, limit=limit, now_wall_ns=now_wall_ns, delays=delays)
    group = next(iter((*report.groups, *report.issue_groups)), None)
    if group is None:
        return None
    worst = report.worst.get(fingerprint)
    found = [*report.stalls, *([worst] if worst is not None else []), *report.issues]
    report = _about(replace(report, about=group), source, worst, explain)
    history = sorted(source.marks(query, [fingerprint]), key=lambda mark: mark.began_wall_ns)
    latest = of_type(Stall, source.issues(query.stalls, EXAMINED))
    details = report.details and replace(
        report.details, history=tuple(history), affected=affected(latest) if latest else None
    )
    return replace(report, sessions=sessions_of(source, found), details=details)


def of_issue(source: IssueStore, issue: Issue, *, now_wall_ns: int, explain: Explain) -> Report:
    """The report of one issue, with the stalls in it, its bug and its session."""
    query = IssueQuery(fingerprint=issue.fingerprint)
    report = build(source, query, limit=1, now_wall_ns=now_wall_ns)
    alone = replace(report, about=issue, stalls=of_type(Stall, [issue]), issues=others_of([issue]))
    return replace(_about(alone, source, issue, explain), sessions=sessions_of(source, [issue]))


def _about(report: Report, source: IssueStore, shown: Issue | None, explain: Explain) -> Report:
    """The report with what only one issue in full has; of other kinds, its stalls are those in the issue."""
    ids = shown.stalls if shown is not None else ()
    found = of_type(Stall, map(source.issue, ids))
    parts = explain(shown, found) if shown is not None else ()
    report = replace(report, details=Details(parts=parts, stalls={stall.id: stall for stall in found}))
    if shown is None or isinstance(shown, Stall):
        return report
    sums = Totals(
        issues=len(found),
        groups=len({stall.fingerprint for stall in found}),
        total_ns=sum(stall.duration_ns for stall in found),
    )
    return replace(report, stalls=found, sums=sums, watched=NEVER)


class _Programs:
    """Sessions by the program that ran: a bug is looked for in the time of those that have it."""

    def __init__(self, marks: Sequence[SessionMark], query: IssueQuery, now_wall_ns: int) -> None:
        self._query = query
        self._now_wall_ns = now_wall_ns
        self._program = {mark.id: mark.name for mark in marks}
        self._sessions: dict[str, list[SessionMark]] = defaultdict(list)
        for mark in marks:
            self._sessions[mark.name].append(mark)
        self._known: dict[frozenset[str], Watched] = {}

    def watched(self, sessions: Iterable[str]) -> Watched:
        """The time of all sessions of the programs that these ran."""
        programs = frozenset(self._program[session] for session in sessions if session in self._program)
        if programs not in self._known:
            marks = [mark for program in programs for mark in self._sessions[program]]
            self._known[programs] = _watched(marks, self._query, self._now_wall_ns)
        return self._known[programs]


def _watched(marks: Iterable[SessionMark], query: IssueQuery, now_wall_ns: int) -> Watched:
    return Watched.by(marks, now_wall_ns, query.since_wall_ns, query.until_wall_ns)


def _figures(
    marks: Iterable[IssueMark], programs: _Programs, loops: Loops, share_of: Callable[[str], float]
) -> dict[str, Figures]:
    groups: dict[str, list[IssueMark]] = defaultdict(list)
    for mark in marks:
        groups[mark.fingerprint].append(mark)
    return {
        fingerprint: Figures(
            trend=trend(
                (mark.began_wall_ns for mark in found), programs.watched({mark.session for mark in found})
            ),
            gains=loops.gains(found, share_of(fingerprint)),
        )
        for fingerprint, found in groups.items()
    }


def sessions_of(source: IssueStore, issues: Sequence[Issue]) -> list[Session]:
    ids = dict.fromkeys(issue.session for issue in issues)
    found = [source.sessions(IssueQuery(session=session), 2) for session in ids]
    return [
        with_open_stalls(source, session) for sessions in found for session in sessions if session.id in ids
    ]


def others_of(issues: Iterable[Issue]) -> list[LagIssue]:
    """Those of other kinds than stalls."""
    return [issue for issue in issues if not isinstance(issue, Stall)]
