"""Issues that are no stalls: jank, late input, idle work; and those of kinds to come."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from loopcanary.model import IssueKind
from loopcanary.model.search import OTHERS
from loopcanary.protocols import IssueStore
from loopcanary.registry import KINDS, REGISTRY
from loopcanary.report.model import others_of
from loopcanary.ui.pages.report import IssuePart

_ROWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuesPage:
    """What the template shows."""

    kind: IssueKind | None
    """Only this kind."""
    kinds: tuple[tuple[IssueKind, int], ...]
    """Every kind that can be here, with the number of its issues."""
    rows: tuple[IssuePart, ...]


def issues_page(source: IssueStore, kind: IssueKind | None = None) -> IssuesPage:
    """All issues by bug, most time first."""
    groups = source.groups(OTHERS)
    counts: Counter[IssueKind] = Counter()
    kinds = [IssueKind(one.name) for one in REGISTRY.of(KINDS)]
    for group in groups:
        counts[group.kind] += group.count
    return IssuesPage(
        kind=kind,
        kinds=tuple((one, counts[one]) for one in kinds if one != IssueKind.STALL),
        rows=tuple(
            IssuePart(group=group, worst=worst)
            for group in [one for one in groups if kind is None or one.kind == kind][:_ROWS]
            for worst in others_of(filter(None, [source.issue(group.worst_id)]))
        ),
    )
