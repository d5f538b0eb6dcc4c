"""A report before it has a form: what was asked for and what the store answered."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field, replace
from typing import TYPE_CHECKING

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Stall
from loopcanary.model.search import IssueQuery, Totals, of_type
from loopcanary.report.figures.affected import EXAMINED, affected
from loopcanary.report.figures.gains import Gains, Loops, own_share
from loopcanary.report.figures.loop_figures import with_open_stalls
from loopcanary.report.figures.trend import Trend, trend
from loopcanary.report.figures.watched import NEVER, ProgramTimes, Watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from loopcanary.model import Issue, LagIssue, Session
    from loopcanary.model.search import IssueGroup, IssueMark
    from loopcanary.protocols.stores import IssueStore
    from loopcanary.report.figures.affected import Affected
    from loopcanary.report.figures.gains import Delays

    Explain = Callable[[Issue, Sequence[Stall]], tuple[str, ...]]
    """Gives the parts of an issue's fingerprint, each as `name=value`, from the issue and the stalls in it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    trend: Trend
    gains: Gains


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """The details of the one bug or issue that a report is about."""

    parts: tuple[str, ...]
    """The parts of the fingerprint, each as `name=value`; empty: they cannot be shown."""
    stalls: Mapping[str, Stall]
    """The kept stalls in the issue that is shown in full, by id."""
    history: tuple[IssueMark, ...] = ()
    """The marks of all issues of the bug, oldest first."""
    affected: Affected | None = None
    """None: it is not a bug of stalls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Groups first, then stalls; both may be cut, `sums` has all."""

    generated_wall_ns: int
    sums: Totals
    sessions: Sequence[Session]
    groups: Sequence[IssueGroup]
    worst: Mapping[str, Issue]
    """The longest issue of each group shown, by fingerprint."""
    stalls: Sequence[Stall]
    issues: Sequence[LagIssue] = ()
    issue_groups: Sequence[IssueGroup] = ()
    issue_places: int = 0
    """The number of their groups, which may not all be in the report."""
    watched: Watched = NEVER
    """The time of all sessions that the query finds."""
    figures: Mapping[str, Figures] = field(default_factory=dict)
    """The figures of each group shown, by fingerprint."""
    about: IssueGroup | Issue | None = None
    """The bug or issue that was asked for; None: the report is about all that is stored."""
    details: Details | None = None
    stores: Sequence[Path] = ()
    is_filtered: bool = False
    """Whether a query chose bugs, so that their numbers are not those of the whole store."""

    @property
    def is_empty(self) -> bool:
        return self.sums.issues == 0

    @property
    def finds_nothing(self) -> bool:
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
    programs = ProgramTimes(source.session_marks(query), query, now_wall_ns)
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
        watched=programs.watched(),
        figures=_figures(
            source.marks(query.stalls, [group.fingerprint for group in groups]),
            programs,
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
    query = IssueQuery(fingerprint=issue.fingerprint)
    report = build(source, query, limit=1, now_wall_ns=now_wall_ns)
    alone = replace(report, about=issue, stalls=of_type(Stall, [issue]), issues=others_of([issue]))
    return replace(_about(alone, source, issue, explain), sessions=sessions_of(source, [issue]))


def _about(report: Report, source: IssueStore, shown: Issue | None, explain: Explain) -> Report:
    """Adds the details of the one issue that is shown in full; of another kind, the report's stalls are those
    in it."""
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


def _figures(
    marks: Iterable[IssueMark], programs: ProgramTimes, loops: Loops, share_of: Callable[[str], float]
) -> dict[str, Figures]:
    groups: dict[str, list[IssueMark]] = defaultdict(list)
    for mark in marks:
        groups[mark.fingerprint].append(mark)
    return {
        fingerprint: Figures(
            # A bug is looked for in the time of the programs that have it.
            trend=trend(
                (mark.began_wall_ns for mark in found),
                programs.watched(
                    {programs.program[mark.session] for mark in found if mark.session in programs.program}
                ),
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
    return [issue for issue in issues if not isinstance(issue, Stall)]
