"""Locks that threads acquire in opposite orders: no deadlock has happened, but one can."""

from __future__ import annotations

from loopcanary.late_dataclass import dataclass
from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.issues.reported import ReportedFacts
from loopcanary.model.stack_frame import StackFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOrder:
    """An order in which a thread acquired two locks."""

    thread: str
    """Its name."""
    holds: str
    """`Lock 'Bank.accounts'`: acquired first, and held."""
    takes: str
    """`RLock 'Bank.ledger'`: acquired while it held that."""
    held_at: tuple[StackFrame, ...] = ()
    """Where it acquired the first: one frame, or none if not known."""
    frames: tuple[StackFrame, ...] = ()
    """Where it acquired the second, innermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockOrder(ReportedFacts):
    """Two locks that threads acquire in both orders, or more in a circle. Nothing waited: it lasts 0 ns."""

    kind = IssueKind("lock-order")
    orders: tuple[TakenOrder, ...] = ()
    """What one `takes` is what the next one `holds`; what the last one takes, the first one holds."""

    @property
    def searched(self) -> tuple[str, ...]:
        return tuple(one for order in self.orders for one in (order.thread, order.holds))
