"""The words of loopcanary as frozen values: what every part speaks and no part owns.

Imports nothing but the standard library. Times are integer nanoseconds of the monotonic clock unless
the name says otherwise (`_wall_ns`: since 1970, for people). See docs/architecture.md.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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

_HOMES = {
    "config": "Config EngineChoice",
    "evidence": ("CallbackNames Collection GilState KernelView LaneTotals Sample StallEvidence ThreadStack"),
    "issue": "Issue IssueKind",
    "session": "Clock LoopHealth Session SessionEnd",
    "stack": "Frame Stack",
    "stall": (
        "Blocker Cause Culprit Holder Ledger Severity StackFrame Stall StallScope "
        "StallState ThreadView WeightedStack"
    ),
}


def __getattr__(name: str) -> Any:
    """Loads each module with its first use: a watched process that runs no loop needs few of them."""
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found
