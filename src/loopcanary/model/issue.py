"""Issue kinds: the closed set of what loopcanary reports."""

from __future__ import annotations

from loopcanary.model.issue_kind import IssueKind
from loopcanary.model.lag_issues import IdleLag, InputLag, Jank
from loopcanary.model.stall import Stall

__all__ = ["Issue", "IssueKind", "LagIssue"]

LagIssue = Jank | InputLag | IdleLag
"""What is told of more than one callback."""

Issue = Stall | Jank | InputLag | IdleLag
"""The union of all issue types. `issue.kind` tells which one it is; all have id, session, pid, fingerprint,
title, thread, loop, scene, cause, culprit, advice, stacks, began_wall_ns, duration_ns."""
