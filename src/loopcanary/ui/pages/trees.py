"""Phases of a start, calls of a slow method: rows one inside the other, with their shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loopcanary.model import Issue, SlowMethod, Startup
from loopcanary.model.call_tree import levels
from loopcanary.model.issues.slow_method import ROWS_MAX
from loopcanary.model.issues.startup import PHASES_MAX
from loopcanary.words.traced import phase_words

_DEEPEST = 30
"""Deeper rows stand beside those of this depth: there would be no room for their names."""
_OPEN_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A row with those inside it."""

    words: str
    file: str = ""
    line: int = 0
    style: str
    """The class of its bar."""
    total_ns: int
    self_ns: int
    count: int = 1
    share: float
    """Of all the time, 0 to 1."""
    self_share: float
    begin_share: float | None = None
    """When it began, as a share of all the time; None: it has no place in time."""
    is_key: bool = False
    in_app: bool = True
    inside: tuple[Branch, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether what is inside is shown at once."""
        return self.share >= _OPEN_SHARE


def branches(issue: Issue) -> tuple[Branch, ...]:
    """The outermost rows; none of issues that have no such tree."""
    if isinstance(issue, Startup):
        return phase_branches(issue)
    return call_branches(issue) if isinstance(issue, SlowMethod) else ()


def phase_branches(start: Startup) -> tuple[Branch, ...]:
    phases, whole = start.phases[:PHASES_MAX], start.duration_ns
    rows = [
        Branch(
            words=phase_words(phase),
            style=f"p-{phase.kind.value}",
            total_ns=phase.duration_ns,
            self_ns=phase.self_ns,
            share=_share(phase.duration_ns, whole),
            self_share=_share(phase.self_ns, whole),
            begin_share=_share(phase.offset_ns, whole),
            is_key=phase is start.slowest,
        )
        for phase in phases
    ]
    return _nested(rows, levels([phase.depth for phase in phases]))


def call_branches(slow: SlowMethod) -> tuple[Branch, ...]:
    calls, whole = slow.rows[:ROWS_MAX], slow.duration_ns
    rows = [
        Branch(
            words=call.frame.qualname,
            file=call.frame.file,
            line=call.frame.line,
            style="own" if call.frame.in_app else "lib",
            total_ns=call.total_ns,
            self_ns=call.self_ns,
            count=call.count,
            share=_share(call.total_ns, whole),
            self_share=_share(call.self_ns, whole),
            is_key=call is slow.key_row,
            in_app=call.frame.in_app,
        )
        for call in calls
    ]
    return _nested(rows, levels([call.depth for call in calls]))


def _share(part_ns: int, whole_ns: int) -> float:
    return min(max(part_ns / whole_ns, 0.0), 1.0) if whole_ns > 0 else 0.0


def _nested(rows: Sequence[Branch], depths: Sequence[int]) -> tuple[Branch, ...]:
    """From the last to the first: what a row has inside it is complete when its turn comes."""
    waiting: list[list[Branch]] = [[] for _ in range(_DEEPEST + 2)]
    for row, depth in zip(reversed(rows), reversed(depths), strict=True):
        at = min(depth, _DEEPEST)
        inside = waiting[at + 1] if depth < _DEEPEST else []
        waiting[at].append(replace(row, inside=tuple(reversed(inside))) if inside else row)
        if depth < _DEEPEST:
            waiting[at + 1] = []
    return tuple(reversed(waiting[0]))
