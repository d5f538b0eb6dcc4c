"""What issues have that a tracer tells whole: it need not know who it is told to."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopcanary.model.issues.facts import IssueFacts
from loopcanary.model.spelling import NEEDED


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedFacts(IssueFacts):
    """As IssueFacts. What is empty here is filled in when the issue is told (tracers.desk): the process and
    the id always, the others where the tracer says nothing."""

    id: str = field(default="", metadata=NEEDED)
    session: str = field(default="", metadata=NEEDED)
    pid: int = field(default=0, metadata=NEEDED)
    fingerprint: str = field(default="", metadata=NEEDED)
    """The tracer: any text that is the same for the same bug."""
    title: str = field(default="", metadata=NEEDED)
    thread: str = field(default="", metadata=NEEDED)
    """Empty: the one that tells."""
    loop: str = field(default="", metadata=NEEDED)
    scene: str | None = None
