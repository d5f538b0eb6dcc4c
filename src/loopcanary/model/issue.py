"""Issue kinds: the closed set of what loopcanary reports."""

from __future__ import annotations

from enum import Enum

from loopcanary.model.stall import Stall


class IssueKind(Enum):
    """Names on the wire. Kinds of later tracers join here, each with its own frozen type."""

    STALL = "stall"


Issue = Stall
"""The union of all issue types."""
