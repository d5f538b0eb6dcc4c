"""Slow methods that a tracer reported: cut to size and completed, and what makes two of them the same bug."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary.model.call_tree import heaviest
from loopcanary.model.issues.slow_method import ROWS_MAX, key_of
from loopcanary.model.stall import Culprit
from loopcanary.tracers.reported import function_identity, refuse_negative

if TYPE_CHECKING:
    from loopcanary.model import Session, SlowMethod


def fitted(slow: SlowMethod, session: Session) -> SlowMethod:  # noqa: ARG001 - as every kind's
    """The slow method with its longest rows, its key, and the key's function as its culprit. ValueError: a
    number is less than 0."""
    refuse_negative(depth=(row.depth for row in slow.rows), count=(row.count for row in slow.rows))
    # Of all rows, before any is left out: the key is to be the same whatever is.
    key = slow.key if slow.key_row is not None else key_of(slow.rows, slow.duration_ns)
    kept = heaviest(slow.rows, ROWS_MAX, depth=lambda row: row.depth, weight=lambda row: row.total_ns)
    rows = tuple(slow.rows[index] for index in kept)
    gone = set(range(len(slow.rows))) - set(kept)
    slow = replace(
        slow,
        rows=rows,
        # It may be further in than rows are kept, as of a recursive function.
        key=kept.index(key) if key in kept else key_of(rows, slow.duration_ns),
        left_out=slow.left_out + len(gone),
        left_out_ns=slow.left_out_ns + sum(slow.rows[index].self_ns for index in gone),
    )
    return slow if slow.culprit is not None else replace(slow, culprit=_culprit(slow))


def _culprit(slow: SlowMethod) -> Culprit | None:
    row = slow.key_row
    if row is None:
        return None
    frame = row.frame
    return Culprit(
        function=frame.function,
        qualname=frame.qualname,
        file=frame.file,
        line=frame.line,
        source=None,
        in_app=frame.in_app,
    )


def identity(slow: SlowMethod) -> tuple[str, ...]:
    """What its fingerprint is made of: no line, no time, no process, and of the file no more than its own
    name and its folder's."""
    row = slow.key_row
    if row is None:
        return (f"thread={slow.thread}",)
    return function_identity(row.frame.qualname, row.frame.file)
