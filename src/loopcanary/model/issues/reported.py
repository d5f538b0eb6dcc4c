"""What issues have in common that a tracer reports whole."""

from __future__ import annotations

from dataclasses import field

from loopcanary.late_dataclass import dataclass
from loopcanary.model.issues.facts import IssueFacts
from loopcanary.model.spelling import NEEDED


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedFacts(IssueFacts):
    """As IssueFacts. The desk (tracers.desk) fills in what is empty: the process and the id always, the
    others where the tracer leaves them."""

    id: str = field(default="", metadata=NEEDED)
    session: str = field(default="", metadata=NEEDED)
    pid: int = field(default=0, metadata=NEEDED)
    fingerprint: str = field(default="", metadata=NEEDED)
    """Of the tracer: any text that is the same for the same bug."""
    title: str = field(default="", metadata=NEEDED)
    thread: str = field(default="", metadata=NEEDED)
    """Empty: the thread that reports it."""
    loop: str = field(default="", metadata=NEEDED)
    scene: str | None = None
