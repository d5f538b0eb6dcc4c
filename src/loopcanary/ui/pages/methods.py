"""Slow methods: which took most time, and the calls in one."""

from __future__ import annotations

from dataclasses import dataclass

from loopcanary.model import IssueKind, Session, SlowMethod
from loopcanary.model.search import IssueGroup, IssueQuery, of_type
from loopcanary.protocols.stores import IssueStore
from loopcanary.ui.pages.trees import Branch, call_branches
from loopcanary.words.lags import evidence_of

ROWS = 50
_OTHERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodRow:
    """One bug."""

    rank: int
    group: IssueGroup
    share: float
    """Of the time of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodsPage:
    """What the template shows."""

    rows: tuple[MethodRow, ...]
    groups: int
    total_ns: int
    count: int
    page: int
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodPage:
    """One slow method."""

    slow: SlowMethod
    session: Session | None
    evidence: tuple[str, ...]
    branches: tuple[Branch, ...]
    group: IssueGroup | None
    others: tuple[SlowMethod, ...]
    """Of the same bug, latest first."""


def methods_page(source: IssueStore, page: int = 1) -> MethodsPage:
    """Bugs by total time, one page of them."""
    query = IssueQuery(kind=IssueKind.SLOW_METHOD)
    sums = source.totals(query)
    pages = max(-(-sums.groups // ROWS), 1)
    page = min(max(page, 1), pages)
    found = source.groups(query, page * ROWS)
    first = (page - 1) * ROWS
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
    )


def method_page(source: IssueStore, issue_id: str) -> MethodPage | None:
    """One slow method; None where there is none."""
    slow = source.issue(issue_id)
    if not isinstance(slow, SlowMethod):
        return None
    query = IssueQuery(kind=IssueKind.SLOW_METHOD, fingerprint=slow.fingerprint)
    sessions = source.sessions(IssueQuery(session=slow.session), 2)
    same = source.issues(query, _OTHERS)
    return MethodPage(
        slow=slow,
        session=next((one for one in sessions if one.id == slow.session), None),
        evidence=evidence_of(slow),
        branches=call_branches(slow),
        group=next(iter(source.groups(query, 1)), None),
        others=tuple(one for one in of_type(SlowMethod, same) if one.id != slow.id),
    )
