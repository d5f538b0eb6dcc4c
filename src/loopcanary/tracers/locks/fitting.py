"""What makes two deadlocks, or two locks that were not released, the same bug; and the line to change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary.model.issues.locks import WAITERS_MAX
from loopcanary.model.stall import Cause, Culprit
from loopcanary.tracers.reported import function_identity

if TYPE_CHECKING:
    from loopcanary.model import Session
    from loopcanary.model.issues.locks import Deadlock, LockLeak
    from loopcanary.model.stack_frame import StackFrame


def fitted_deadlock(issue: Deadlock, session: Session) -> Deadlock:  # noqa: ARG001 - as every kind's
    """With the line at which the first task of the cycle waits."""
    frames = issue.cycle[0].frames if issue.cycle else ()
    return replace(issue, culprit=_culprit(frames), cause=Cause.LOCK)


def fitted_leak(issue: LockLeak, session: Session) -> LockLeak:  # noqa: ARG001 - as every kind's
    """With the line that acquired it."""
    return replace(
        issue, culprit=_culprit(issue.acquired), cause=Cause.LOCK, waiters=issue.waiters[:WAITERS_MAX]
    )


def deadlock_identity(issue: Deadlock) -> tuple[str, ...]:
    """The functions in which its tasks wait, in any order."""
    places = sorted(_place(wait.frames) for wait in issue.cycle)
    return tuple(part for place in places for part in place) or (f"tasks={len(issue.cycle)}",)


def leak_identity(issue: LockLeak) -> tuple[str, ...]:
    """The function that acquired it."""
    return _place(issue.acquired) or (f"lock={issue.primitive}",)


def _own(frames: tuple[StackFrame, ...]) -> StackFrame | None:
    """The innermost of the program's own; else the innermost."""
    return next((frame for frame in frames if frame.in_app), frames[0] if frames else None)


def _place(frames: tuple[StackFrame, ...]) -> tuple[str, ...]:
    frame = _own(frames)
    return () if frame is None else function_identity(frame.qualname, frame.file)


def _culprit(frames: tuple[StackFrame, ...]) -> Culprit | None:
    frame = _own(frames)
    if frame is None:
        return None
    return Culprit(
        function=frame.function,
        qualname=frame.qualname,
        file=frame.file,
        line=frame.line,
        source=None,
        in_app=frame.in_app,
    )
