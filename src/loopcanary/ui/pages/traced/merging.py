"""Trees of traced calls put together: equal calls by one path become one row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from itertools import chain

from loopcanary.late_dataclass import dataclass
from loopcanary.model import StackFrame
from loopcanary.model.call_tree import parents
from loopcanary.model.calls import TracedCall, TracedWork


@dataclass(slots=True)
class _MergedRow:
    depth: int
    calls: int = 0
    total_ns: int = 0
    self_ns: int = 0
    is_open: bool = False
    inside: dict[StackFrame, _MergedRow] = field(default_factory=dict)


def merged(trees: Iterable[Sequence[TracedCall]]) -> list[TracedCall]:
    """As one tree, the longest row of each level first."""
    root = _MergedRow(-1)
    for calls in trees:
        rows: list[_MergedRow] = []
        for call, outer in zip(calls, parents([call.depth for call in calls]), strict=True):
            around = root if outer is None else rows[outer]
            row = around.inside.setdefault(call.frame, _MergedRow(around.depth + 1))
            row.calls += call.calls
            row.total_ns += call.total_ns
            row.self_ns += call.self_ns
            row.is_open |= call.open
            rows.append(row)
    found = []
    waiting = _longest_last(root)
    while waiting:
        frame, row = waiting.pop()
        found.append(
            TracedCall(
                frame=frame,
                depth=row.depth,
                calls=row.calls,
                total_ns=row.total_ns,
                self_ns=row.self_ns,
                open=row.is_open,
            )
        )
        waiting += _longest_last(row)
    return found


def merged_work(works: Iterable[Sequence[TracedWork]]) -> list[TracedWork]:
    """Equal names as one, the longest first."""
    found: dict[tuple[str, str | None], TracedWork] = {}
    for one in chain.from_iterable(works):
        before = found.get((one.name, one.task), replace(one, times=0, total_ns=0))
        found[one.name, one.task] = replace(
            before, times=before.times + one.times, total_ns=before.total_ns + one.total_ns
        )
    return sorted(found.values(), key=lambda one: -one.total_ns)


def _longest_last(around: _MergedRow) -> list[tuple[StackFrame, _MergedRow]]:
    return sorted(around.inside.items(), key=lambda item: item[1].total_ns)
