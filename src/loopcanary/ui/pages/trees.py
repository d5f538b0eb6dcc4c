"""Phases of a start, calls of a slow method or in a stall: rows one inside the other, with their shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import Any, Literal

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, PhaseKind, SlowMethod, StackFrame, Stall, Startup
from loopcanary.model.calls import TracedCall, TracedWork, heaviest, levels, parents, places
from loopcanary.model.issues.slow_method import ROWS_MAX
from loopcanary.model.issues.startup import PHASES_MAX
from loopcanary.model.units import format_duration
from loopcanary.ui.pages.flame import DEPTH_MAX, node_of
from loopcanary.ui.pages.timeline import tick, ticks
from loopcanary.words.text import count_of
from loopcanary.words.traced import compared_words, left_out_words, phase_words, work_words


@dataclass(slots=True)
class _MergedRow:
    depth: int
    calls: int = 0
    total_ns: int = 0
    self_ns: int = 0
    is_open: bool = False
    inside: dict[StackFrame, _MergedRow] = field(default_factory=dict)


def merged(trees: Iterable[Sequence[TracedCall]]) -> list[TracedCall]:
    """One tree of all, the longest row of each level first."""
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


def by_function(calls: Sequence[TracedCall]) -> list[TracedCall]:
    """The functions with time of their own, largest first, with all calls of each. Calls inside another one
    of the same function do not count in `total_ns`."""
    count: Counter[StackFrame] = Counter()
    total_ns: Counter[StackFrame] = Counter()
    self_ns: Counter[StackFrame] = Counter()
    around: list[TracedCall] = []
    inside: Counter[StackFrame] = Counter()
    for call in calls:
        while around and around[-1].depth >= call.depth:
            inside[around.pop().frame] -= 1
        frame = call.frame
        count[frame] += call.calls
        self_ns[frame] += call.self_ns
        total_ns[frame] += 0 if inside[frame] else call.total_ns
        inside[frame] += 1
        around.append(call)
    functions = [
        TracedCall(frame=frame, depth=0, calls=count[frame], total_ns=total_ns[frame], self_ns=self_ns[frame])
        for frame in count
        if self_ns[frame] > 0
    ]
    return sorted(functions, key=lambda one: (-one.self_ns, -one.total_ns))


_DEEPEST = 30
"""Deeper rows are shown at this depth, since their names would have no room."""
_OPEN_SHARE = 0.05
_FUNCTIONS_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A row with those inside it."""

    words: str
    file: str = ""
    line: int = 0
    style: str
    total_ns: int
    self_ns: int
    count: int = 1
    share: float
    """The share of all the time, 0 to 1."""
    self_share: float
    begin_share: float | None = None
    """When it began, as a share of all the time; None: it has no place in time."""
    is_key: bool = False
    is_unfinished: bool = False
    """Whether the call had not returned when its record ended."""
    in_app: bool = True
    is_ours: bool = False
    """Whether it is an import of loopcanary."""
    inside: tuple[Branch, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether what is inside is shown at once."""
        return self.share >= _OPEN_SHARE and not self.is_ours


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueTree:
    title: str
    bars: Literal["when", "share"]
    """The meaning of the bars: a time, or a share of the time."""
    branches: tuple[Branch, ...]
    bold: str = "largest own time"
    left_out: str
    """Words about rows that are left out; empty: none are."""
    length_ns: int
    ticks: tuple[tuple[float, str], ...] = ()
    """An axis of the time: positions in per cent, and moments."""
    flame: dict[str, Any] | None = None
    """The rows as a flame graph (`Flame.tree`), whose nodes also have `calls`."""
    functions: tuple[Branch, ...] = ()
    """The functions, with shares of their own times, the largest first."""
    functions_left_out: str = ""
    """Words about functions that are left out."""
    work: tuple[Branch, ...] = ()
    """The time by callback and task, if there are several."""


def phase_tree(start: Startup) -> IssueTree:
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
    calls = calls_of(slow)
    return replace(
        calls_tree(calls, slow.duration_ns, [index == slow.key for index in range(len(calls))]),
        bold="what the bug is named after",
        left_out=left_out_words(slow, len(calls)),
        work=work_rows(slow.work, slow.duration_ns),
    )


def calls_of(slow: SlowMethod) -> list[TracedCall]:
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
    """The calls of all these slow methods together; None: there are no calls."""
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
    """The calls in a stall; None: they were not traced."""
    if stall.calls is None:
        return None
    calls = stall.calls.rows
    said = left_out_words(stall.calls, len(calls)), compared_words(stall)
    tree = calls_tree(calls, stall.duration_ns)
    return replace(
        tree, left_out="; ".join(filter(None, said)), work=work_rows(stall.calls.work, stall.duration_ns)
    )


_TREES: Mapping[str, Callable[[Any], IssueTree | None]] = {
    "stall": traced_tree,
    "startup": phase_tree,
    "slow-method": call_tree,
}
"""By the name of a kind, what its page shows in place of the parts that reports have."""


def tree_of(issue: Issue) -> IssueTree | None:
    """None: kinds without a tree, and trees without a row."""
    make = _TREES.get(issue.kind.value)
    found = None if make is None else make(issue)
    return found if found is not None and found.branches else None


def work_rows(works: Sequence[TracedWork], whole_ns: int) -> tuple[Branch, ...]:
    """By callback and task; empty for a single one, which its issue names."""
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
    """Calls in `whole_ns`, which the graph calls `of`, each with those inside it. `keys` says which rows are
    important; else those with the largest own time are."""
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
    by_own_time = [_branch(call, whole_ns) for call in functions[:_FUNCTIONS_MAX]]
    return IssueTree(
        title="Calls",
        bars="share",
        branches=_nested(rows, levels([call.depth for call in calls])),
        left_out="",
        flame=_flame(calls, whole_ns, of),
        functions=tuple(replace(one, share=one.self_share) for one in by_own_time),
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


def _more_words(functions: Sequence[TracedCall]) -> str:
    if not functions:
        return ""
    own_ns = sum(one.self_ns for one in functions)
    return f"and {count_of(len(functions), 'function')}, {format_duration(own_ns)} by themselves"


def outermost_ns(calls: Sequence[TracedCall]) -> int:
    """The time of calls that are not inside another one."""
    above = parents([call.depth for call in calls])
    return sum(call.total_ns for call, outer in zip(calls, above, strict=True) if outer is None)


def _flame(calls: Sequence[TracedCall], whole_ns: int, of: str) -> dict[str, Any] | None:
    """The calls as a flame graph; no call is wider than the one around it."""
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
    """Goes from the last row to the first, so that what is inside a row is complete at its turn."""
    waiting: list[list[Branch]] = [[] for _ in range(_DEEPEST + 2)]
    for row, depth in zip(reversed(rows), reversed(depths), strict=True):
        at = min(depth, _DEEPEST)
        inside = waiting[at + 1] if depth < _DEEPEST else []
        waiting[at].append(replace(row, inside=tuple(reversed(inside))) if inside else row)
        if depth < _DEEPEST:
            waiting[at + 1] = []
    return tuple(reversed(waiting[0]))
