"""Issues that are no stalls: jank, late input, idle work; and those of kinds to come."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from loopcanary.model import IssueKind, LagIssue
from loopcanary.model.search import StallQuery
from loopcanary.report.frame_words import grouped
from loopcanary.ui.sources import Source

_READ = 2_000
_ROWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueRow:
    """One bug."""

    longest: LagIssue
    count: int
    total_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuesPage:
    """What the template shows."""

    kind: IssueKind | None
    """Only this kind."""
    kinds: tuple[tuple[IssueKind, int], ...]
    """Every kind that can be here, with the number of its issues."""
    rows: tuple[IssueRow, ...]


def issues_page(source: Source, kind: IssueKind | None = None) -> IssuesPage:
    """The latest issues by bug, most time first."""
    issues = source.issues(StallQuery(), _READ)
    counts = Counter(issue.kind for issue in issues)
    shown = [issue for issue in issues if kind is None or issue.kind is kind]
    return IssuesPage(
        kind=kind,
        kinds=tuple((one, counts[one]) for one in IssueKind if one is not IssueKind.STALL),
        rows=tuple(
            IssueRow(longest=longest, count=count, total_ns=total_ns)
            for longest, count, total_ns in grouped(shown)[:_ROWS]
        ),
    )
