"""What makes two orders of locks the same bug; and the line to change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary.model.stall import Cause
from loopcanary.tracers.places import culprit_of, identity_of
from loopcanary.words.locks import ORDER_ADVICE

if TYPE_CHECKING:
    from loopcanary.model import Session
    from loopcanary.model.issues.lock_orders import LockOrder


def fitted(issue: LockOrder, session: Session) -> LockOrder:  # noqa: ARG001 - as every kind's
    """With the line at which the first order's second lock is acquired, and what to do."""
    frames = issue.orders[0].frames if issue.orders else ()
    return replace(issue, culprit=culprit_of(frames), cause=Cause.LOCK, advice=issue.advice or ORDER_ADVICE)


def identity(issue: LockOrder) -> tuple[str, ...]:
    """The functions in which the second locks are acquired, in any order."""
    places = sorted(identity_of(order.frames) for order in issue.orders)
    return tuple(part for place in places for part in place) or (f"locks={len(issue.orders)}",)
