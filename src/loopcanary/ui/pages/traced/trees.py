"""Phases of a start, calls of a slow method or in a stall: rows one inside the other, with their shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, PhaseKind, SlowMethod, Stall, Startup
from loopcanary.model.call_tree import heaviest, levels, parents, places
from loopcanary.model.calls import TracedCall, TracedWork
from loopcanary.model.issues.slow_method import ROWS_MAX
from loopcanary.model.issues.startup import PHASES_MAX
from loopcanary.model.units import format_duration
from loopcanary.registry import said_of
from loopcanary.ui.pages.flame import DEPTH_MAX, node_of
from loopcanary.ui.pages.timeline import tick, ticks
from loopcanary.ui.pages.traced.functions import by_function
from loopcanary.ui.pages.traced.merging import merged, merged_work
from loopcanary.words.text import count_of
from loopcanary.words.traced import compared_words, left_out_words, phase_words, work_words

_DEEPEST = 30
"""Deeper rows stand beside those of this depth: there would be no room for their names."""
_OPEN_SHARE = 0.05
_FUNCTIONS_MAX = 20


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
    is_unfinished: bool = False
    """A call that had not returned when its record ended."""
    in_app: bool = True
    is_ours: bool = False
    """An import of loopcanary: of no interest."""
    inside: tuple[Branch, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether what is inside is shown at once."""
        return self.share >= _OPEN_SHARE and not self.is_ours


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueTree:
    """Rows one inside the other."""

    title: str
    bars: Literal["when", "share"]
    """What the bars show: when it was, or the share of the time."""
    branches: tuple[Branch, ...]
    """The outermost rows."""
    bold: str = "largest own time"
    """What its bold rows are."""
    left_out: str
    """Words for what is not among them; empty: all are."""
    length_ns: int
    """All the time: 100 %."""
    ticks: tuple[tuple[float, str], ...] = ()
    """Of an axis of it: positions in per cent, and moments."""
    flame: dict[str, Any] | None = None
    """The same rows as a flame graph (`Flame.tree`), whose nodes have `calls` besides; None: it has none."""
    functions: tuple[Branch, ...] = ()
    """The same by function, with the shares of their own times, largest first."""
    functions_left_out: str = ""
    """Words for those that are not among them."""
    work: tuple[Branch, ...] = ()
    """The same by callback and task, where there are several."""


def tree_of(issue: Issue) -> IssueTree | None:
    """What the issue's kind says; None: kinds without one, and trees without a row."""
    found: IssueTree | None = said_of(issue, "tree")
    return found if found is not None and found.branches else None


def phase_tree(start: Startup) -> IssueTree:
    """Phases of a start, each with those inside it."""
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
            is_ours=phase.kind is PhaseKind.IMPORT and phase.name.partition(".")[0] == "loopcanary",
        )
        for phase in phases
    ]
    left_out = start.left_out + len(start.phases) - len(phases)
    return IssueTree(
        title="Timeline",
        bars="when",
        branches=_nested(rows, levels([phase.depth for phase in phases])),
        left_out=f"{count_of(left_out, 'short phase')} left out" if left_out > 0 else "",
        length_ns=whole,
        ticks=tuple((100 * _share(at, whole), tick(at)) for at in ticks(whole)),
    )


def call_tree(slow: SlowMethod) -> IssueTree:
    """Calls in a slow method, each with those inside it."""
    calls = calls_of(slow)
    return replace(
        calls_tree(calls, slow.duration_ns, [index == slow.key for index in range(len(calls))]),
        bold="what the bug is named after",
        left_out=left_out_words(slow, len(calls)),
        work=work_rows(slow.work, slow.duration_ns),
    )


def calls_of(slow: SlowMethod) -> list[TracedCall]:
    """Its rows."""
    return [
        TracedCall(
            frame=row.frame,
            depth=row.depth,
            calls=row.count,
            total_ns=row.total_ns,
            self_ns=row.self_ns,
            open=row.open,
        )
        for row in slow.rows[:ROWS_MAX]
    ]


def pieces_tree(pieces: Sequence[SlowMethod]) -> IssueTree | None:
    """Calls in all of these slow methods, put together; None: there are none."""
    rows = merged(map(calls_of, pieces))
    kept = heaviest(rows, ROWS_MAX, depth=lambda row: row.depth, weight=lambda row: row.total_ns)
    shown = [rows[index] for index in kept]
    if not shown:
        return None
    whole_ns = sum(slow.duration_ns for slow in pieces)
    tree = calls_tree(shown, whole_ns, of="slow pieces of work")
    left_out = len(rows) - len(shown) + sum(slow.left_out for slow in pieces)
    return replace(
        tree,
        left_out=f"and {count_of(left_out, 'short row')}" if left_out else "",
        work=work_rows(merged_work(slow.work for slow in pieces), whole_ns)[:ROWS_MAX],
    )


def traced_tree(stall: Stall) -> IssueTree | None:
    """What the thread called in a stall, where its calls were traced."""
    if stall.calls is None:
        return None
    calls = stall.calls.rows
    said = left_out_words(stall.calls, len(calls)), compared_words(stall)
    tree = calls_tree(calls, stall.duration_ns)
    return replace(
        tree, left_out="; ".join(filter(None, said)), work=work_rows(stall.calls.work, stall.duration_ns)
    )


def work_rows(works: Sequence[TracedWork], whole_ns: int) -> tuple[Branch, ...]:
    """By callback and task; of one alone its issue says which it is."""
    rows = tuple(
        Branch(
            words=work_words(work),
            style="own",
            total_ns=work.total_ns,
            self_ns=work.total_ns,
            count=work.times,
            share=(share := _share(work.total_ns, whole_ns)),
            self_share=share,
        )
        for work in works
    )
    return rows if len(rows) > 1 else ()


def calls_tree(
    calls: Sequence[TracedCall], whole_ns: int, keys: Sequence[bool] | None = None, of: str = "stalled time"
) -> IssueTree:
    """Calls in `whole_ns`, which are called `of`, each with those inside it.

    `keys`: which rows are the important ones; without it those with the largest own time.
    """
    most = max((call.self_ns for call in calls), default=0)
    rows = [
        replace(
            _branch(call, whole_ns),
            is_key=call.self_ns == most > 0 if keys is None else keys[index],
            is_unfinished=call.open,
        )
        for index, call in enumerate(calls)
    ]
    functions = by_function(calls)
    return IssueTree(
        title="Calls",
        bars="share",
        branches=_nested(rows, levels([call.depth for call in calls])),
        left_out="",
        flame=_flame(calls, whole_ns, of),
        functions=tuple(_by_own_time(call, whole_ns) for call in functions[:_FUNCTIONS_MAX]),
        functions_left_out=_more_words(functions[_FUNCTIONS_MAX:]),
        length_ns=whole_ns,
    )


def _branch(call: TracedCall, whole_ns: int) -> Branch:
    frame = call.frame
    return Branch(
        words=frame.qualname,
        file=frame.file,
        line=frame.line,
        style="own" if frame.in_app else "lib",
        total_ns=call.total_ns,
        self_ns=call.self_ns,
        count=call.calls,
        share=_share(call.total_ns, whole_ns),
        self_share=_share(call.self_ns, whole_ns),
        in_app=frame.in_app,
    )


def _by_own_time(function: TracedCall, whole_ns: int) -> Branch:
    branch = _branch(function, whole_ns)
    return replace(branch, share=branch.self_share)


def _more_words(functions: Sequence[TracedCall]) -> str:
    if not functions:
        return ""
    own_ns = sum(one.self_ns for one in functions)
    return f"and {count_of(len(functions), 'function')}, {format_duration(own_ns)} by themselves"


def outermost_ns(calls: Sequence[TracedCall]) -> int:
    """How long calls took that are inside of no other."""
    above = parents([call.depth for call in calls])
    return sum(call.total_ns for call, outer in zip(calls, above, strict=True) if outer is None)


def _flame(calls: Sequence[TracedCall], whole_ns: int, of: str) -> dict[str, Any] | None:
    """None is wider than the one that it is inside of."""
    depths = [call.depth for call in calls]
    # A killed process's calls reach beyond the last look at it.
    width_ns = max(whole_ns, outermost_ns(calls))
    placed = places(depths, [call.total_ns for call in calls], width_ns)
    root: dict[str, Any] = {"name": of, "place": "", "own": False, "value": width_ns, "children": []}
    nodes = [
        {**node_of(call.frame), "calls": call.calls, "value": length_ns, "children": []}
        for call, (_, length_ns) in zip(calls, placed, strict=True)
    ]
    for node, outer, level in zip(nodes, parents(depths), levels(depths), strict=True):
        if level < DEPTH_MAX and node["value"]:
            (root if outer is None else nodes[outer])["children"].append(node)
    return root if root["children"] else None


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
