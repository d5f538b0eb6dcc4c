"""Slow methods: which took most time, and what was called in the latest."""

from __future__ import annotations

from loopcanary.late_dataclass import dataclass
from loopcanary.model import IssueKind, SlowMethod
from loopcanary.model.search import IssueGroup, IssueQuery, of_type
from loopcanary.protocols.stores import IssueStore
from loopcanary.ui.pages.trees import IssueTree, pieces_tree

ROWS = 50
_LATEST = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodRow:
    rank: int
    group: IssueGroup
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodsPage:
    rows: tuple[MethodRow, ...]
    groups: int
    total_ns: int
    count: int
    page: int
    pages: int
    latest: int
    """The number of latest slow methods in `tree`."""
    tree: IssueTree | None


def methods_page(source: IssueStore, page: int = 1) -> MethodsPage:
    query = IssueQuery(kind=IssueKind.SLOW_METHOD)
    sums = source.totals(query)
    pages = max(-(-sums.groups // ROWS), 1)
    page = min(max(page, 1), pages)
    found = source.groups(query, page * ROWS)
    first = (page - 1) * ROWS
    latest = of_type(SlowMethod, source.issues(query, _LATEST))
    return MethodsPage(
        rows=tuple(
            MethodRow(
                rank=rank, group=group, share=group.total_ns / sums.total_ns if sums.total_ns > 0 else 0.0
            )
            for rank, group in enumerate(found[first:], start=first + 1)
        ),
        groups=sums.groups,
        total_ns=sums.total_ns,
        count=sums.issues,
        page=page,
        pages=pages,
        latest=len(latest),
        tree=pieces_tree(latest),
    )
