"""Issues: stalls, and kinds that each have a frozen type of their own."""

from __future__ import annotations

from loopcanary.model.issues.facts import IssueFacts
from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.stall import Stall

__all__ = ["Issue", "IssueKind", "LagIssue"]

LagIssue = IssueFacts
"""An issue of more than one callback: every kind but stalls, a third party's too."""

Issue = Stall | LagIssue
"""The union of all issue types. `issue.kind` says which one it is; all have id, session, pid, fingerprint,
title, thread, loop, scene, cause, culprit, advice, stacks, began_wall_ns, duration_ns."""
