"""Issues that are no stalls: jank, late input, idle work; and those of kinds to come."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from loopcanary.model import IssueKind
from loopcanary.model.search import IssueGroup, StallQuery
from loopcanary.ui.sources import Source

_ROWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuesPage:
    """What the template shows."""

    kind: IssueKind | None
    """Only this kind."""
    kinds: tuple[tuple[IssueKind, int], ...]
    """Every kind that can be here, with the number of its issues."""
    rows: tuple[IssueGroup, ...]


def issues_page(source: Source, kind: IssueKind | None = None) -> IssuesPage:
    """All issues by bug, most time first."""
    groups = source.issue_groups(StallQuery())
    counts: Counter[IssueKind] = Counter()
    for group in groups:
        counts[group.worst.kind] += group.count
    return IssuesPage(
        kind=kind,
        kinds=tuple((one, counts[one]) for one in IssueKind if one is not IssueKind.STALL),
        rows=tuple([group for group in groups if kind is None or group.worst.kind is kind][:_ROWS]),
    )
