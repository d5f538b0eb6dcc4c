"""Matrix's issues (Tencent/matrix, TraceCanary): a line of JSON each, for tools that read those.

A stall with traced calls is a `Trace_EvilMethod` NORMAL: `stack` (depth, method id, count, cost in ms),
trimmed to 30 rows, and `stackKey`, by the original's own rules (TraceDataUtils.trimStack, getTreeKey); the
loop's dispatch is the outermost row. Another is a LAG, with a stack in words. `methodMapping` has the names
of the ids in it; they are numbers of this export. What the original does not say (how much was trimmed, the
exact time) is in `loopcanary`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import IO, NamedTuple

from loopcanary.exporters import Exported, Format
from loopcanary.exporters.texts import encoded, frame_name, name_of, short_place, whole
from loopcanary.model import Issue, SlowMethod, StackFrame, Stall

DISPATCH = (1 << 20) - 2
"""AppMethodBeat.METHOD_ID_DISPATCH."""
ROWS_MAX = 30
_ROUNDS, _STEP_MS = 60, 5
_KEY_SHARE = 0.3
_MS = 1_000_000


class MatrixRow(NamedTuple):
    """A line of `stack`."""

    depth: int
    id: int
    calls: int
    cost_ms: int


def trimmed(rows: Sequence[MatrixRow]) -> list[MatrixRow]:
    """Keeps 30 rows at most: drops those under 5 ms, from the end on, then those under 10, and so on to 300;
    then all after the thirtieth."""
    left = list(rows)
    for least in range(_STEP_MS, (_ROUNDS + 1) * _STEP_MS, _STEP_MS):
        for at in range(len(left) - 1, -1, -1):
            if len(left) <= ROWS_MAX:
                return left
            if left[at].cost_ms < least:
                del left[at]
    return left[:ROWS_MAX]


def stack_key(rows: Sequence[MatrixRow], cost_ms: int) -> str:
    """The key `7|`: the row with the largest (depth + 1) x cost, among those with 30 % of the cost, other
    than the dispatch."""
    least = int(_float(_float(cost_ms) * _float(_KEY_SHARE)))
    heavy = [row for row in rows if row.cost_ms >= least] or list(rows[:1])
    heavy.sort(key=lambda row: _int((row.depth + 1) * row.cost_ms), reverse=True)
    if len(heavy) > 1 and heavy[0].id == DISPATCH:
        del heavy[0]
    return f"{heavy[0].id}|" if heavy else ""


def stack_text(rows: Sequence[MatrixRow]) -> str:
    return "".join(f"{row.depth},{row.id},{row.calls},{row.cost_ms}\n" for row in rows)


def _float(number: float) -> float:
    """Rounds as a Java float."""
    found: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return found


def _int(number: int) -> int:
    """Overflows as a Java int."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


class _Methods:
    """Ids of functions, from 1 in the order in which they come."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], int] = {}

    def id(self, frame: StackFrame) -> int:
        return self._ids.setdefault((frame.file, frame.qualname), len(self._ids) + 1)

    def mapping(self, frames: Sequence[StackFrame]) -> str:
        """Lines `id,access,class method`, by id."""
        lines = {self.id(frame): _method(frame) for frame in frames}
        return "".join(f"{number},0,{lines[number]}\n" for number in sorted(lines))


def _method(frame: StackFrame) -> str:
    module = frame.file.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
    owner, _, method = frame.qualname.rpartition(".")
    parts = whole(f"{module}.{owner}" if owner else module), whole(method) or "?"
    return " ".join(part.replace(" ", "_").replace(",", "_") for part in parts)


def write(exported: Exported, out: IO[bytes]) -> None:
    methods = _Methods()
    for issue in exported.all():
        told = {
            "tag": "Trace_EvilMethod",
            "process": exported.program(issue).name,
            "time": issue.began_wall_ns // _MS,
            "scene": issue.scene or "",
            **_content(issue, methods),
        }
        out.write(encoded(told).encode("ascii") + b"\n")


def _content(issue: Issue, methods: _Methods) -> dict[str, object]:
    own: dict[str, object] = {"id": issue.id, "duration_ns": issue.duration_ns}
    frames, rows = _rows(issue, methods)
    if not frames:
        stacks = issue.stacks[:1]
        lines = [f"{frame_name(frame)}({short_place(frame)})" for stack in stacks for frame in stack.frames]
        return {"detail": "LAG", "threadStack": whole("\n".join(lines)), "loopcanary": own}
    cost_ms = max(issue.duration_ns // _MS, *(row.cost_ms for row in rows))
    kept = trimmed(rows)
    return {
        "detail": "NORMAL",
        "cost": cost_ms,
        "stack": stack_text(kept),
        "stackKey": stack_key(kept, cost_ms),
        "methodMapping": f"{DISPATCH},1,{name_of(issue.loop)} dispatch\n{methods.mapping(frames)}",
        "loopcanary": {**own, "trimmed_rows": len(rows) - len(kept)},
    }


def _rows(issue: Issue, methods: _Methods) -> tuple[list[StackFrame], list[MatrixRow]]:
    """The functions, and their rows after that of the dispatch."""
    if isinstance(issue, SlowMethod):
        told = [(row.frame, row.depth, row.count, row.total_ns) for row in issue.rows]
    elif isinstance(issue, Stall) and issue.calls is not None:
        told = [(row.frame, row.depth, row.calls, row.total_ns) for row in issue.calls.rows]
    else:
        told = []
    rows = [MatrixRow(0, DISPATCH, 1, issue.duration_ns // _MS)]
    rows += [MatrixRow(depth + 1, methods.id(frame), count, ns // _MS) for frame, depth, count, ns in told]
    return [frame for frame, *_ in told], rows


FORMAT = Format(name="matrix", write=write, takes_issues=True)
