"""Slow methods that a tracer reported: cut to size and completed, and what makes two of them the same bug."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary.model.call_tree import heaviest
from loopcanary.model.issues.slow_method import ROWS_MAX, CallRow, SlowMethod, key_of
from loopcanary.model.stall import Cause, Culprit
from loopcanary.tracers.desk import Told
from loopcanary.tracers.reported import completed, function_identity, refuse_negative

if TYPE_CHECKING:
    from loopcanary.model import Session, Stall
    from loopcanary.model.calls import TracedCalls
    from loopcanary.model.issues.facts import IssueFacts


def slow_methods_of(stall: Stall, session: Session, threshold_ns: int) -> tuple[IssueFacts, ...]:
    """The slow method that a stall over the threshold is, with its exact calls; empty where it is none, or
    its calls were not traced."""
    traced = stall.calls
    if traced is None or not traced.rows or stall.duration_ns < threshold_ns:
        return ()
    slow = replace(
        _slow_method(traced, stall.began_wall_ns, stall.duration_ns, threshold_ns), loop=stall.loop
    )
    told = Told(issue=slow, thread=stall.thread, scene=stall.scene, told_ns=0)
    found = replace(completed(told, session, 0, [stall]), id=f"{stall.id}-slow-method")
    if _function(found.culprit) != _function(stall.culprit):
        found = replace(found, cause=Cause.UNKNOWN, advice=None)  # those are another function's
    return (found,)


def slow_method_of_call(
    calls: TracedCalls,
    session: Session,
    *,
    thread: str,
    key: str,
    began_wall_ns: int,
    duration_ns: int,
    threshold_ns: int,
) -> IssueFacts:
    """The slow method that one call outside of stalls is, which names it. `calls`: itself, and all in it;
    `key`: what no other call of the session has. ValueError: their file holds impossible values."""
    slow = replace(_slow_method(calls, began_wall_ns, duration_ns, threshold_ns), key=0)
    told = Told(issue=slow, thread=thread, scene=None, told_ns=0)
    return replace(completed(told, session, 0, ()), id=f"{session.id}-{slow.kind.value}-{key}")


def _slow_method(calls: TracedCalls, began_wall_ns: int, duration_ns: int, threshold_ns: int) -> SlowMethod:
    return SlowMethod(
        began_wall_ns=began_wall_ns,
        duration_ns=duration_ns,
        threshold_ns=threshold_ns,
        rows=tuple(
            CallRow(
                frame=row.frame,
                depth=row.depth,
                count=row.calls,
                total_ns=row.total_ns,
                self_ns=row.self_ns,
                open=row.open,
            )
            for row in calls.rows
        ),
        left_out=calls.left_out,
        left_out_ns=calls.left_out_ns,
        lost=calls.lost,
        work=calls.work,
    )


def _function(culprit: Culprit | None) -> tuple[str, str] | None:
    return None if culprit is None else (culprit.file, culprit.qualname)


def fitted(slow: SlowMethod, session: Session) -> SlowMethod:  # noqa: ARG001 - as every kind's
    """The slow method with its longest rows, its key, and the key's function as its culprit. ValueError: a
    number is less than 0."""
    refuse_negative(depth=(row.depth for row in slow.rows), count=(row.count for row in slow.rows))
    refuse_negative(times=(one.times for one in slow.work))
    # Of all rows, before any is left out: the key must not depend on which are.
    key = slow.key if slow.key_row is not None else key_of(slow.rows, slow.duration_ns)
    kept = heaviest(slow.rows, ROWS_MAX, depth=lambda row: row.depth, weight=lambda row: row.total_ns)
    rows = tuple(slow.rows[index] for index in kept)
    gone = set(range(len(slow.rows))) - set(kept)
    slow = replace(
        slow,
        rows=tuple(replace(row, calls=row.calls or row.count) for row in rows),
        work=slow.work[:ROWS_MAX],
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
