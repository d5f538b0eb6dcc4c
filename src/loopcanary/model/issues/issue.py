"""Issue kinds: the closed set of what loopcanary reports."""

from __future__ import annotations

from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.issues.lags import IdleLag, InputLag, Jank
from loopcanary.model.issues.slow_method import SlowMethod
from loopcanary.model.issues.startup import Startup
from loopcanary.model.stall import Stall

__all__ = ["Issue", "IssueKind", "LagIssue", "TracedIssue", "is_news"]

TracedIssue = Startup | SlowMethod
"""What a tracer tells whole, with all that it has measured; a third party's can, too."""

LagIssue = Jank | InputLag | IdleLag | TracedIssue
"""An issue of more than one callback: every issue that is no stall."""

Issue = Stall | LagIssue
"""The union of all issue types. `issue.kind` tells which one it is; all have id, session, pid, fingerprint,
title, thread, loop, scene, cause, culprit, advice, stacks, began_wall_ns, duration_ns."""


def is_news(issue: Issue) -> bool:
    """Whether it is reported. A start within its limit is kept for comparison, and is no news."""
    return not isinstance(issue, Startup) or issue.is_slow
