"""What makes two deadlocks, or two locks that were not released, the same bug; and the line to change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary.model.issues.locks import WAITERS_MAX
from loopcanary.model.stall import Cause
from loopcanary.tracers.places import culprit_of, identity_of

if TYPE_CHECKING:
    from loopcanary.model import Session
    from loopcanary.model.issues.locks import Deadlock, LockLeak


def fitted_deadlock(issue: Deadlock, session: Session) -> Deadlock:  # noqa: ARG001 - as every kind's
    """With the line at which the first task of the cycle waits."""
    frames = issue.cycle[0].frames if issue.cycle else ()
    return replace(issue, culprit=culprit_of(frames), cause=Cause.LOCK)


def fitted_leak(issue: LockLeak, session: Session) -> LockLeak:  # noqa: ARG001 - as every kind's
    """With the line that acquired it."""
    return replace(
        issue, culprit=culprit_of(issue.acquired), cause=Cause.LOCK, waiters=issue.waiters[:WAITERS_MAX]
    )


def deadlock_identity(issue: Deadlock) -> tuple[str, ...]:
    """The functions in which its tasks wait, in any order."""
    places = sorted(identity_of(wait.frames) for wait in issue.cycle)
    return tuple(part for place in places for part in place) or (f"tasks={len(issue.cycle)}",)


def leak_identity(issue: LockLeak) -> tuple[str, ...]:
    """The function that acquired it."""
    return identity_of(issue.acquired) or (f"lock={issue.primitive}",)
