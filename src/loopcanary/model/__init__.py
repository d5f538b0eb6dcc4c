"""The words of loopcanary as frozen values: what every part speaks and no part owns.

Imports nothing but the standard library. Times are integer nanoseconds of the monotonic clock unless
the name says otherwise (`_wall_ns`: since 1970, for people). See docs/architecture.md.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from loopcanary.model.calls import TracedCall, TracedCalls, TracedWork
    from loopcanary.model.config import Config
    from loopcanary.model.evidence import (
        CallbackNames,
        Collection,
        Fault,
        HostReading,
        KernelView,
        LaneTotals,
        Sample,
        StallEvidence,
        ThreadReading,
        ThreadStack,
        ThreadWait,
    )
    from loopcanary.model.figures import (
        DropLevel,
        FrameFigures,
        FrameSlice,
        IdleFigures,
        InputFigures,
        SceneFrames,
        ShownFrame,
        TraceFigures,
    )
    from loopcanary.model.issues.finding import FindingRule, FoundAt, ImportedFinding
    from loopcanary.model.issues.issue import Issue, LagIssue
    from loopcanary.model.issues.kind import IssueKind
    from loopcanary.model.issues.lags import Handled, IdleLag, InputLag, Jank, LateFrame
    from loopcanary.model.issues.slow_method import CallRow, SlowMethod
    from loopcanary.model.issues.startup import CodeOrigin, Milestone, Phase, PhaseKind, StartKind, Startup
    from loopcanary.model.session import Clock, KilledBy, LoopHealth, PriorityChange, Session, SessionEnd
    from loopcanary.model.stack import Frame, Stack
    from loopcanary.model.stall import (
        Blocker,
        Cause,
        Culprit,
        Grade,
        Holder,
        Ledger,
        Portion,
        Severity,
        StackFrame,
        Stall,
        StallScope,
        StallState,
        Surroundings,
        ThreadView,
        WeightedStack,
    )
    from loopcanary.model.timeline import (
        Activity,
        Doing,
        EarlierWork,
        LongWork,
        Pause,
        ShortWork,
        Span,
        Timeline,
        WorkKind,
    )
    from loopcanary.model.tracer_states import TracerState, TracerStatus
    from loopcanary.model.waiting import (
        Contributor,
        GilState,
        LockProof,
        LockView,
        Scheduler,
        StateWord,
        Target,
        TargetKind,
    )

_HOMES = {
    "calls": "TracedCall TracedCalls TracedWork",
    "config": "Config",
    "evidence": (
        "CallbackNames Collection Fault HostReading KernelView LaneTotals Sample StallEvidence "
        "ThreadReading ThreadStack ThreadWait"
    ),
    "figures": (
        "DropLevel FrameFigures FrameSlice IdleFigures InputFigures SceneFrames ShownFrame TraceFigures"
    ),
    "issues.finding": "ImportedFinding FindingRule FoundAt",
    "issues.issue": "Issue LagIssue",
    "issues.kind": "IssueKind",
    "issues.lags": "Handled IdleLag InputLag Jank LateFrame",
    "session": "Clock KilledBy LoopHealth PriorityChange Session SessionEnd",
    "issues.slow_method": "CallRow SlowMethod",
    "stack": "Frame Stack",
    "stall": (
        "Blocker Cause Culprit Grade Holder Ledger Portion Severity StackFrame Stall StallScope "
        "StallState Surroundings ThreadView WeightedStack"
    ),
    "issues.startup": "CodeOrigin Milestone Phase PhaseKind StartKind Startup",
    "timeline": "Activity Doing EarlierWork LongWork Pause ShortWork Span Timeline WorkKind",
    "tracer_states": "TracerState TracerStatus",
    "waiting": "Contributor GilState LockProof LockView Scheduler StateWord Target TargetKind",
}
__all__ = [name for names in _HOMES.values() for name in names.split()]


def __getattr__(name: str) -> Any:
    """Loads each module with its first use: a watched process that runs no loop needs few of them."""
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found
