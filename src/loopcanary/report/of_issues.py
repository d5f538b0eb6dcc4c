"""Reports of one issue that is no stall, and of one group of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loopcanary.model.search import IssueGroup, StallQuery
from loopcanary.report.model import IssueDetails, Report, StallSource, sessions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loopcanary.model import LagIssue, Stall

    Explain = Callable[[LagIssue, Sequence[Stall]], tuple[str, ...]]
    """What an issue's fingerprint is made of; the stalls are those in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    stalls: int
    groups: int
    total_ns: int


def of_issue(source: StallSource, issue: LagIssue, *, now_wall_ns: int, explain: Explain) -> Report:
    """The report of one issue, with the stalls in it, its group and its session."""
    groups = source.issue_groups(StallQuery(fingerprint=issue.fingerprint), 1)
    return _report(source, issue, groups, now_wall_ns, explain)


def of_issue_group(
    source: StallSource, fingerprint: str, *, limit: int, now_wall_ns: int, explain: Explain
) -> Report | None:
    """The report of one group: its longest issue with the stalls in it, its latest ones and their sessions.
    None where it is not there any more."""
    query = StallQuery(fingerprint=fingerprint)
    groups = source.issue_groups(query, 1)
    if not groups:
        return None
    report = _report(source, groups[0].worst, groups, now_wall_ns, explain)
    issues = source.issues(query, limit)
    return replace(report, issues=issues, sessions=sessions_of(source, [groups[0].worst, *issues]))


def _report(
    source: StallSource,
    issue: LagIssue,
    groups: Sequence[IssueGroup],
    now_wall_ns: int,
    explain: Explain,
) -> Report:
    found = [stall for stall_id in issue.stalls if (stall := source.stall(stall_id)) is not None]
    return Report(
        generated_wall_ns=now_wall_ns,
        sums=_Sums(
            stalls=len(found),
            groups=len({stall.fingerprint for stall in found}),
            total_ns=sum(stall.duration_ns for stall in found),
        ),
        sessions=sessions_of(source, [issue]),
        groups=(),
        worst={},
        stalls=found,
        issues=[issue],
        issue_groups=groups,
        issue_places=len(groups),
        issue_details=IssueDetails(parts=explain(issue, found), stalls={stall.id: stall for stall in found}),
    )
