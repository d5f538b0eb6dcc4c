"""What people call issues of each kind; options and JSON have the kinds' own names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model.search import IssueGroup
from loopcanary.registry import KINDS, REGISTRY, issue_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopcanary.model import Issue, IssueKind


def kind_words(kind: IssueKind) -> str:
    """`slow method`; a kind that is not registered here goes by its name."""
    return issue_kind(kind.value).words


def counted_words(kind: IssueKind, number: int) -> str:
    """`1 slow method`, `12 slow methods`."""
    known = issue_kind(kind.value)
    return f"{number:,} {known.words if number == 1 else known.list_words}"


def has_cause(one: Issue | IssueGroup) -> bool:
    """Whether a cause is to be said: of a stall always; of another issue where it has one, and lasted."""
    if one.kind.value == "stall":
        return True
    lasted_ns = one.max_ns if isinstance(one, IssueGroup) else one.duration_ns
    return one.cause.value != "unknown" and lasted_ns > 0


def issues_title(groups: Sequence[IssueGroup]) -> str:
    """What a list of such issues is called: by the kinds in it."""
    there = {group.kind.value for group in groups}
    words = [kind.list_words for one, kind in REGISTRY.loaded(KINDS) if one.name in there]
    return ", ".join(dict.fromkeys(words)).capitalize()
