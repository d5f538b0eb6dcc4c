"""What issues have that a tracer tells whole: it need not know who it is told to."""

from __future__ import annotations

from dataclasses import dataclass

from loopcanary.model.issues.facts import IssueFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedFacts(IssueFacts):
    """As IssueFacts. What is empty here is filled in when the issue is told (tracers.desk): the process and
    the id always, the others where the tracer says nothing."""

    id: str = ""
    session: str = ""
    pid: int = 0
    fingerprint: str = ""
    """The tracer: any text that is the same for the same bug."""
    title: str = ""
    thread: str = ""
    """Empty: the one that tells."""
    loop: str = ""
    scene: str | None = None
