"""The traced calls of a stall as slices, beside its samples.

What is stored is a tree: equal calls by one path are one row, without the begin and end of each. So a row is
one slice, as long as its calls together, the rows inside it in the order of their first calls, its own time
last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from loopcanary.late_dataclass import dataclass
from loopcanary.model import StackFrame, Stall, StallState, TracedCall, TracedCalls
from loopcanary.model.calls import levels, parents, places

NAME: Final = "exact calls"
"""The label that marks traced calls as exact, in every format."""
_SHORT = "(short calls left out)"
LEFT_OUT = StackFrame(function=_SHORT, qualname=_SHORT, file="", line=0, in_app=False)
_ROUNDING_NS = 500
"""Calls are timed in microseconds: half of one is a rounding error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactCall:
    """All calls by one path."""

    path: tuple[StackFrame, ...]
    """Outermost first; the last is the function itself."""
    begin_ns: int
    """The place of its drawing, from the stall's begin."""
    length_ns: int
    own_ns: int
    """The last part, in which no traced call was inside it."""
    calls: int
    is_open: bool
    """Whether one of them had not returned."""

    @property
    def frame(self) -> StackFrame:
        return self.path[-1]

    @property
    def own_begin_ns(self) -> int:
        return self.begin_ns + self.length_ns - self.own_ns


def exact_calls(stall: Stall) -> list[ExactCall]:
    """Each row before those inside it; empty for a stall whose calls were not traced."""
    if stall.calls is None:
        return []
    rows = _with_left_out(stall.calls)
    above = parents([row.depth for row in rows])
    placed = places([row.depth for row in rows], [row.total_ns for row in rows], _whole_ns(stall))
    own = [length_ns for _, length_ns in placed]
    paths: list[tuple[StackFrame, ...]] = []
    for row, outer, (_, length_ns) in zip(rows, above, placed, strict=True):
        paths.append((row.frame,) if outer is None else (*paths[outer], row.frame))
        if outer is not None:
            own[outer] -= length_ns
    return [
        ExactCall(
            path=path, begin_ns=begin, length_ns=length, own_ns=own_ns, calls=row.calls, is_open=row.open
        )
        for row, path, (begin, length), own_ns in zip(rows, paths, placed, own, strict=True)
    ]


def own_times(calls: Sequence[ExactCall]) -> list[ExactCall]:
    """The rows with time of their own, in the order of that time."""
    return sorted((call for call in calls if call.own_ns > 0), key=lambda call: call.own_begin_ns)


def edges(calls: Sequence[ExactCall]) -> Iterator[tuple[int, StackFrame, bool]]:
    """(time, function, whether it begins) in order; a function that ends is the last that began."""
    opened: list[ExactCall] = []
    for call in calls:
        while len(opened) >= len(call.path):
            yield _end_of(opened.pop())
        yield call.begin_ns, call.frame, True
        opened.append(call)
    while opened:
        yield _end_of(opened.pop())


def _end_of(call: ExactCall) -> tuple[int, StackFrame, bool]:
    return call.begin_ns + call.length_ns, call.frame, False


def _whole_ns(stall: Stall) -> int:
    """How long it lasted: calls of a killed process reach beyond the last look at it."""
    if stall.state is StallState.ENDED or stall.calls is None:
        return stall.duration_ns
    depths = levels([row.depth for row in stall.calls.rows])
    outermost = sum(row.total_ns for row, depth in zip(stall.calls.rows, depths, strict=True) if depth == 0)
    return max(stall.duration_ns, outermost)


def _with_left_out(calls: TracedCalls) -> Sequence[TracedCall]:
    """The rows, each followed by the rest of what was inside it."""
    if not calls.left_out:
        return calls.rows
    above = parents([row.depth for row in calls.rows])
    rest_ns = [row.total_ns - row.self_ns for row in calls.rows]
    behind: dict[int, list[int]] = {}
    last = list(range(len(calls.rows)))
    for index in reversed(range(len(calls.rows))):
        outer = above[index]
        if outer is not None:
            rest_ns[outer] -= calls.rows[index].total_ns
            last[outer] = max(last[outer], last[index])
        behind.setdefault(last[index], []).append(index)
    rows: list[TracedCall] = []
    for index, row in enumerate(calls.rows):
        rows.append(row)
        # The innermost first: it was reached first.
        rows += [
            _short(calls.rows[outer].depth + 1, rest_ns[outer])
            for outer in behind.get(index, [])
            if rest_ns[outer] >= _ROUNDING_NS
        ]
    return rows


def _short(depth: int, length_ns: int) -> TracedCall:
    return TracedCall(frame=LEFT_OUT, depth=depth, calls=0, total_ns=length_ns, self_ns=length_ns)
