"""Groups of stalls that have no one place."""

from __future__ import annotations

from loopcanary.model import Cause
from loopcanary.model.search import IssueGroup

ANYWHERE = "in whatever code had its turn; each stall has its own place"


def is_anywhere(group: IssueGroup) -> bool:
    """Whether the stalls struck any code; their store names no place then."""
    return group.cause is Cause.HOST and group.count > 1 and group.culprit is None
