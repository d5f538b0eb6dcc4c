"""Which issues are notified, of any kind: by notifications and by the bell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.issues.lags import Jank

if TYPE_CHECKING:
    from collections.abc import Collection

    from loopcanary.model.issues.issue import Issue


def kinds_named(names: Collection[str]) -> frozenset[IssueKind]:
    """The kinds of these names; empty, which is all, where none is named."""
    return frozenset(map(IssueKind, names))


def felt_ns(issue: Issue) -> int:
    """The longest single wait: of jank the longest frame, as its length is that of a slice, which
    says nothing; else the duration."""
    return issue.figures.worst_ns if isinstance(issue, Jank) else issue.duration_ns
