"""Matrix's rows as the calls of a stall, with the row that names the bug."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from loopcanary.importers.matrix_rows import DISPATCH
from loopcanary.importers.ownership import JavaOwnership
from loopcanary.model import Culprit, Stall
from loopcanary.model.call_tree import levels, parents
from loopcanary.model.calls import TracedCall, TracedCalls
from loopcanary.model.issues.slow_method import CallRow, key_of
from loopcanary.model.stack_frame import StackFrame
from loopcanary.model.stall import WeightedStack
from loopcanary.protocols.imports import CodePlace, SeenCall
from loopcanary.words.sentences import say

_MS = 1_000_000
_COST_MAX_MS = 2_000_000_000
_ROWS_MAX = 200
_STACKS_MAX = 40
_DISPATCH = CodePlace("android.os.Handler", "dispatchMessage", "", 0)


def with_calls(
    stall: Stall, calls: tuple[SeenCall, ...], methods: Mapping[int, CodePlace], own: JavaOwnership
) -> Stall:
    """The stall with its calls. Where no stack names the culprit, it is the row of the original's stackKey:
    of those with 30 % of the time the one with the largest (depth + 1) x cost."""
    rows = calls[:_ROWS_MAX]
    costs = [min(row.cost_ms, _COST_MAX_MS) * _MS for row in rows]
    inside = [0] * len(rows)
    for index, above in enumerate(parents([row.depth for row in rows])):
        if above is not None:
            inside[above] += costs[index]
    traced = TracedCalls(
        rows=tuple(
            TracedCall(
                frame=_frame(row.id, methods, own),
                depth=depth,
                calls=row.calls,
                total_ns=cost,
                self_ns=max(cost - within, 0),
            )
            for row, depth, cost, within in zip(
                rows, levels([row.depth for row in rows]), costs, inside, strict=True
            )
        ),
        left_out=len(calls) - len(rows),
    )
    stall = replace(stall, calls=traced, evidence=(*stall.evidence, *_evidence(rows, methods)))
    if stall.stacks:
        return stall
    keyed = tuple(
        CallRow(
            frame=one.frame,
            depth=one.depth,
            total_ns=one.total_ns,
            self_ns=one.self_ns,
            is_dispatch=row.id == DISPATCH,
        )
        for one, row in zip(traced.rows, rows, strict=True)
    )
    key = key_of(keyed, stall.duration_ns)
    stall = replace(stall, stacks=_stacks(traced))
    return stall if key is None else _blamed(stall, keyed[key].frame)


def _stacks(traced: TracedCalls) -> tuple[WeightedStack, ...]:
    """The paths of the tree, each with the time that its last method had for itself: a flame graph."""
    above = parents([row.depth for row in traced.rows])
    stacks = []
    for index, row in enumerate(traced.rows):
        frames, at = [], cast("int | None", index)
        while at is not None:
            frames.append(traced.rows[at].frame)
            at = above[at]
        if row.self_ns:
            stacks.append(WeightedStack(weight_ns=row.self_ns, frames=tuple(frames)))
    return tuple(sorted(stacks, key=lambda stack: -stack.weight_ns)[:_STACKS_MAX])


def _blamed(stall: Stall, frame: StackFrame) -> Stall:
    culprit = Culprit(
        function=frame.function,
        qualname=frame.qualname,
        file=frame.file,
        line=0,
        source=None,
        in_app=frame.in_app,
    )
    return replace(
        stall, culprit=culprit, title=say("title:what", what="blocked", place=f"in {frame.qualname}")
    )


def _frame(number: int, methods: Mapping[int, CodePlace], own: JavaOwnership) -> StackFrame:
    """Of an id that is in no mapping: the id, as code that may be the app's."""
    place = methods.get(number) or (_DISPATCH if number == DISPATCH else None)
    if place is not None:
        return own.frame(place)
    return StackFrame(function=f"?{number}", qualname=f"?{number}", file="?", line=0, in_app=True)


def _evidence(rows: tuple[SeenCall, ...], methods: Mapping[int, CodePlace]) -> tuple[str, ...]:
    ids = {row.id for row in rows} - {DISPATCH}
    unknown = len(ids - methods.keys())
    if not unknown:
        return ()
    if not methods:
        return (say("java-no-map", count=unknown),)
    return (say("java-other-map", count=unknown, whole=len(ids)),)
