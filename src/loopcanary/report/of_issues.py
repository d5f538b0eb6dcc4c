"""Reports of one issue of another kind than stalls, and of one group of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary.model import Stall
from loopcanary.model.search import IssueQuery, Totals
from loopcanary.report.model import IssueDetails, Report, others_of, sessions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loopcanary.model import LagIssue
    from loopcanary.model.search import IssueGroup
    from loopcanary.protocols.stores import IssueStore

    Explain = Callable[[LagIssue, Sequence[Stall]], tuple[str, ...]]
    """What an issue's fingerprint is made of; the stalls are those in it."""


def of_issue(source: IssueStore, issue: LagIssue, *, now_wall_ns: int, explain: Explain) -> Report:
    """The report of one issue, with the stalls in it, its group and its session."""
    groups = source.groups(IssueQuery(fingerprint=issue.fingerprint).others, 1)
    return _report(source, issue, groups, now_wall_ns, explain)


def of_issue_group(
    source: IssueStore, fingerprint: str, *, limit: int, now_wall_ns: int, explain: Explain
) -> Report | None:
    """The report of one group: its longest issue with the stalls in it, its latest ones and their sessions.
    None where it is not there any more."""
    query = IssueQuery(fingerprint=fingerprint).others
    groups = source.groups(query, 1)
    worst = source.issue(groups[0].worst_id) if groups else None
    if worst is None or isinstance(worst, Stall):
        return None
    report = _report(source, worst, groups, now_wall_ns, explain)
    issues = others_of(source.issues(query, limit))
    return replace(report, issues=issues, sessions=sessions_of(source, [worst, *issues]))


def _report(
    source: IssueStore,
    issue: LagIssue,
    groups: Sequence[IssueGroup],
    now_wall_ns: int,
    explain: Explain,
) -> Report:
    found = [one for one in map(source.issue, issue.stalls) if isinstance(one, Stall)]
    return Report(
        generated_wall_ns=now_wall_ns,
        sums=Totals(
            issues=len(found),
            groups=len({stall.fingerprint for stall in found}),
            total_ns=sum(stall.duration_ns for stall in found),
        ),
        sessions=sessions_of(source, [issue]),
        groups=(),
        worst={},
        worst_issues={issue.fingerprint: issue},
        stalls=found,
        issues=[issue],
        issue_groups=groups,
        issue_places=len(groups),
        issue_details=IssueDetails(parts=explain(issue, found), stalls={stall.id: stall for stall in found}),
    )
