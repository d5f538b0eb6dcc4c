"""An issue of a kind that nothing here can read: its plugin is missing, or fails."""

from __future__ import annotations

from typing import Any

from loopcanary.late_dataclass import dataclass
from loopcanary.model.issues.facts import IssueFacts
from loopcanary.model.issues.kind import IssueKind


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownIssue(IssueFacts):
    """What all kinds have in common, and the record as it came: it is kept for when the plugin is there."""

    record: dict[str, Any]
    """As JSON."""

    @property
    def kind(self) -> IssueKind:  # type: ignore[override]
        """As the record names it."""
        return IssueKind(self.record["kind"])
