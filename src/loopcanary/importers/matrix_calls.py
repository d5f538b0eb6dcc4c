"""Matrix's call rows and its methodMapping.

A row is `depth,id,count,cost` in an issue's `stack`, or `..id count cost` in logcat, a dot a depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from loopcanary.importers.java import JavaOwnership
from loopcanary.model import Stall
from loopcanary.model.calls import TracedCall, TracedCalls, levels, parents
from loopcanary.model.issues.slow_method import CallRow, key_of
from loopcanary.model.stack_frame import StackFrame
from loopcanary.model.stall import WeightedStack, culprit_at
from loopcanary.protocols.imports import CodePlace, SeenCall
from loopcanary.words.sentences import say

DISPATCH = (1 << 20) - 2
"""AppMethodBeat.METHOD_ID_DISPATCH."""
_ROW = re.compile(r"\s*(\d{1,4}),(\d{1,7}),(\d{1,9}),(\d{1,12})\s*", re.ASCII)
_DOTTED = re.compile(r"\s*(?:\|\*)?\s*(\.{0,400})(\d{1,7}) (\d{1,9}) (\d{1,12})\s*", re.ASCII)
_MAPPED = re.compile(r"(-?\d{1,7}),(\d{1,10}),([^\s,]{1,500}) ([^\s,]{1,300})(?: (\S{0,2000}))?\s*", re.ASCII)
_READ_MAX = 5_000
_METHODS_MAX = 2_000_000


def row_of(text: str) -> SeenCall | None:
    if found := _ROW.fullmatch(text):
        depth, number, count, cost = map(int, found.groups())
        return SeenCall(depth, number, count, cost)
    if found := _DOTTED.fullmatch(text):
        return SeenCall(len(found[1]), int(found[2]), int(found[3]), int(found[4]))
    return None


def rows_of(stack: str) -> tuple[SeenCall, ...]:
    """The rows of an issue's `stack`, in which some tools write `|` for line ends."""
    parts = re.split(r"\\n|[\n|]", stack, maxsplit=_READ_MAX)
    return tuple(row for part in parts[:_READ_MAX] if (row := row_of(part)) is not None)


def methods_of(lines: Iterable[str]) -> dict[int, CodePlace]:
    """The methods of a methodMapping (`id,access,class method desc`) by id."""
    found: dict[int, CodePlace] = {}
    for line in lines:
        if (one := _MAPPED.fullmatch(line)) and len(found) < _METHODS_MAX:
            found.setdefault(int(one[1]), CodePlace(one[3], one[4], "", 0))
    return found


def is_mapping(lines: Iterable[str]) -> bool:
    """Whether the text is a methodMapping, by its first 20 lines."""
    some = [line for _, line in zip(range(20), (line for line in lines if line.strip()), strict=False)]
    kept = [line for line in some if not line.startswith("#")]
    return bool(kept) and all(_MAPPED.fullmatch(line) for line in kept)


_MS = 1_000_000
_COST_MAX_MS = 2_000_000_000
_ROWS_MAX = 200
_STACKS_MAX = 40
_DISPATCH = CodePlace("android.os.Handler", "dispatchMessage", "", 0)


def with_calls(
    stall: Stall, calls: tuple[SeenCall, ...], methods: Mapping[int, CodePlace], own: JavaOwnership
) -> Stall:
    """The stall with its calls. Where no stack names the culprit, the row of the original's stackKey does: of
    those with 30 % of the time the one with the largest (depth + 1) x cost."""
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
    if key is None:
        return stall
    culprit = culprit_at(keyed[key].frame)
    title = say("title:what", what="blocked", place=f"in {culprit.qualname}")
    return replace(stall, culprit=culprit, title=title)


def _stacks(traced: TracedCalls) -> tuple[WeightedStack, ...]:
    """The paths of the tree, each with its last method's own time: a flame graph."""
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


def _frame(number: int, methods: Mapping[int, CodePlace], own: JavaOwnership) -> StackFrame:
    """An id without a mapping is shown as the id, as code that may be the app's."""
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
