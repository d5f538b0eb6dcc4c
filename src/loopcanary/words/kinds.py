"""What people call issues of each kind; options and JSON have the kinds' own names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.registry import KINDS, REGISTRY, issue_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopcanary.model import Issue, IssueKind
    from loopcanary.model.search import IssueGroup


def kind_words(kind: IssueKind) -> str:
    """`slow method`; a kind that is not registered here goes by its name."""
    return issue_kind(kind.value).words


def has_cause(one: Issue | IssueGroup) -> bool:
    """Whether a cause is to be said: of a stall always; of another issue where stalls in it have one."""
    return one.kind.value == "stall" or one.cause.value != "unknown"


def issues_title(groups: Sequence[IssueGroup]) -> str:
    """What a list of such issues is called: by the kinds in it."""
    there = {group.kind.value for group in groups}
    words = [kind.list_words for one, kind in REGISTRY.loaded(KINDS) if one.name in there]
    return ", ".join(dict.fromkeys(words)).capitalize()
