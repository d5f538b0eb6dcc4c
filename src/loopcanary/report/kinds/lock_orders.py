"""Locks that threads acquire in opposite orders: which thread acquires which where."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.document.makers import part, prose, said
from loopcanary.document.parts import Block, Items
from loopcanary.document.verdict import where
from loopcanary.model import StackFrame, WeightedStack
from loopcanary.model.issues.lock_orders import LockOrder
from loopcanary.report.stacks import stack_frames
from loopcanary.words.locks import of_order
from loopcanary.words.text import printable

_NAME_MAX = 120


def why(issue: LockOrder) -> Iterator[Block]:
    """The line, where it is known, and the orders. There is no cause beside them: nothing waited."""
    if issue.culprit is not None:
        yield from where(issue.culprit, issue.cause)
    yield Items(tuple(said(prose(words)) for words in of_order(issue)))


def parts(issue: LockOrder) -> tuple[Block, ...]:
    """The stacks of each order."""
    return tuple(
        block
        for order in issue.orders
        for does, lock, frames in (
            ("acquires", order.takes, order.frames),
            ("holds", f"{order.holds}, acquired", order.held_at),
        )
        for block in _stack(f"thread {order.thread} {does} {lock} here", frames)
    )


def _stack(title: str, frames: tuple[StackFrame, ...]) -> tuple[Block, ...]:
    stack = WeightedStack(weight_ns=0, frames=frames)
    return part(printable(title, 3 * _NAME_MAX), [stack_frames(stack)]) if frames else ()
