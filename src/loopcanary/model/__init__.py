"""The words of loopcanary as frozen values: what every part speaks and no part owns.

Imports nothing but the standard library. Times are integer nanoseconds of the monotonic clock unless
the name says otherwise (`_wall_ns`: since 1970, for people). See docs/architecture.md.
"""

from __future__ import annotations

from loopcanary.model.config import Config, EngineChoice
from loopcanary.model.evidence import (
    CallbackNames,
    Collection,
    GilState,
    KernelView,
    LaneTotals,
    Sample,
    StallEvidence,
    ThreadStack,
)
from loopcanary.model.issue import Issue, IssueKind
from loopcanary.model.session import Clock, LoopHealth, Session, SessionEnd
from loopcanary.model.stack import Frame, Stack
from loopcanary.model.stall import (
    Blocker,
    Cause,
    Culprit,
    Holder,
    Ledger,
    Severity,
    StackFrame,
    Stall,
    StallScope,
    StallState,
    ThreadView,
    WeightedStack,
)

__all__ = [
    "Blocker",
    "CallbackNames",
    "Cause",
    "Clock",
    "Collection",
    "Config",
    "Culprit",
    "EngineChoice",
    "Frame",
    "GilState",
    "Holder",
    "Issue",
    "IssueKind",
    "KernelView",
    "LaneTotals",
    "Ledger",
    "LoopHealth",
    "Sample",
    "Session",
    "SessionEnd",
    "Severity",
    "Stack",
    "StackFrame",
    "Stall",
    "StallEvidence",
    "StallScope",
    "StallState",
    "ThreadStack",
    "ThreadView",
    "WeightedStack",
]
