"""Slow methods that a tracer reported: cut to size and completed, and what makes two of them the same bug."""

from __future__ import annotations

from dataclasses import replace

from loopcanary.model import Session, Stall
from loopcanary.model.calls import TracedCalls
from loopcanary.model.issues.facts import IssueFacts
from loopcanary.model.issues.slow_method import CallRow, SlowMethod
from loopcanary.model.stall import Cause, Culprit
from loopcanary.tracers.desk import Told
from loopcanary.tracers.reported import completed


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
