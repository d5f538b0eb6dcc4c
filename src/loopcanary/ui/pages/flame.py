"""Stacks of stalls put together: a tree for the flame graph, and the lines that held most."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from heapq import heappop, heappush
from itertools import chain
from typing import Any

from loopcanary.late_dataclass import dataclass
from loopcanary.model import StackFrame, Stall
from loopcanary.model.loop_frames import work_of
from loopcanary.model.timeline import Activity, Doing
from loopcanary.words.text import library_path, printable
from loopcanary.words.waiting import DOING_WORDS

_NAME_MAX = 120
DEPTH_MAX = 150
_HOT_MAX = 8
_BARE = frozenset({Doing.ON_CPU, Doing.UNKNOWN})
Leaf = tuple[str, str]
"""What the thread did: its key and its words."""
_Weighed = tuple[Sequence[StackFrame], int, Leaf | None]
NODES_MAX = 4_000
"""Narrower nodes take less than a pixel, unless there are very many."""


@dataclass(slots=True)
class _Node:
    name: str
    place: str
    own: bool
    doing: str = ""
    """What the thread did, for a leaf that is not a frame."""
    weight_ns: int = 0
    below: dict[tuple[str, str], _Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HotLine:
    """A line of the program, and how much of the stalled time it was on the stack."""

    function: str
    file: str
    line: int
    share: float
    self_share: float
    """The share of time in which it was the innermost own line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flame:
    stalls: int
    total_ns: int
    tree: dict[str, Any] | None
    """The tree of d3-flame-graph: `name`, `value` (ns), `children`; also `place` and `own`, and `doing` for
    a leaf that is not a frame."""
    hot: tuple[HotLine, ...]
    left_out: int
    """The number of frames that are too narrow for the tree."""


def flame(stalls: Iterable[Stall], nodes_max: int = NODES_MAX) -> Flame:
    """The work on all stacks of these stalls, by the time that each held; the widest frames of it."""
    kept = list(stalls)
    return _flame(chain.from_iterable(map(_stacks, kept)), len(kept), nodes_max)


def leaf_of(activity: Activity) -> Leaf | None:
    """The leaf below the innermost frame; None: the thread ran, or it is not known what it did."""
    if activity.doing in _BARE:
        return None
    inside = f" in {activity.syscall}" if activity.syscall and activity.doing is Doing.BLOCKED else ""
    return activity.doing.value, printable(f"[{DOING_WORDS[activity.doing]}{inside}]", _NAME_MAX)


def node_of(frame: StackFrame) -> dict[str, Any]:
    """The frame's name, its place, and whether it is the program's own."""
    place = frame.file if frame.in_app else library_path(frame.file)
    return {
        "name": printable(frame.qualname, _NAME_MAX),
        "place": printable(place, _NAME_MAX),
        "own": frame.in_app,
    }


def _stacks(stall: Stall) -> Iterator[_Weighed]:
    """Each stack's time, divided by what the thread did in it."""
    did: dict[int, Counter[Leaf | None]] = defaultdict(Counter)
    for span in stall.timeline.spans if stall.timeline is not None else ():
        if span.stack is not None and span.length_ns > 0:
            did[span.stack][leaf_of(span.activity)] += span.length_ns
    for index, stack in enumerate(stall.stacks):
        frames, rest, parts = work_of(stack.frames), stack.weight_ns, did[index]
        for leaf, length_ns in parts.items():
            if leaf is not None:
                part_ns = stack.weight_ns * length_ns // parts.total()
                rest -= part_ns
                yield frames, part_ns, leaf
        yield frames, rest, None


def holding_flame(stalls: Iterable[Stall], nodes_max: int = NODES_MAX) -> Flame | None:
    """The flame of the threads that held what these stalls waited for; None: none of their code is known."""
    kept = [stall for stall in stalls if stall.blamed_holder is not None and stall.timeline is not None]
    stacks = [
        (_started(span.activity.holder_frames), span.length_ns, None)
        for stall in kept
        if stall.timeline is not None
        for span in stall.timeline.spans
    ]
    held = _flame(stacks, len(kept), nodes_max)
    return held if held.tree is not None else None


def _started(frames: Sequence[StackFrame]) -> Sequence[StackFrame]:
    """The stack from the outermost own frame on: what is outside of it started the thread."""
    work = work_of(frames)
    own = [index for index, frame in enumerate(work) if frame.in_app]
    return work[: own[-1] + 1] if own else work


def _flame(stacks: Iterable[_Weighed], stalls: int, nodes_max: int) -> Flame:
    root = _Node("stalled time", "", own=False)
    on_stack: dict[tuple[str, str, int], int] = {}
    innermost: dict[tuple[str, str, int], int] = {}
    for frames, weight_ns, leaf in stacks:
        if weight_ns > 0 and frames:
            _add(root, frames, weight_ns, leaf)
            own = [(one.qualname, one.file, one.line) for one in frames if one.in_app]
            for key in set(own):
                on_stack[key] = on_stack.get(key, 0) + weight_ns
            if own:
                innermost[own[0]] = innermost.get(own[0], 0) + weight_ns
    total = root.weight_ns
    kept, nodes = _widest(root, nodes_max)
    hot = sorted(on_stack, key=lambda key: (-innermost.get(key, 0), -on_stack[key], key))[:_HOT_MAX]
    return Flame(
        stalls=stalls,
        total_ns=total,
        tree=_to_dict(root, kept) if total else None,
        left_out=nodes - len(kept),
        hot=tuple(
            HotLine(
                function=key[0],
                file=key[1],
                line=key[2],
                share=on_stack[key] / total,
                self_share=innermost.get(key, 0) / total,
            )
            for key in hot
        ),
    )


def _add(root: _Node, frames: Sequence[StackFrame], weight_ns: int, leaf: Leaf | None) -> None:
    node = root
    node.weight_ns += weight_ns
    for frame in reversed(frames[-DEPTH_MAX:]):
        key = frame.qualname, frame.file
        if key not in node.below:
            node.below[key] = _Node(**node_of(frame))
        node = node.below[key]
        node.weight_ns += weight_ns
    if leaf is not None:
        doing, name = leaf
        below = node.below.setdefault((name, ""), _Node(name, "", own=False, doing=doing))
        below.weight_ns += weight_ns


def _widest(root: _Node, most: int) -> tuple[set[int], int]:
    """The ids of the widest nodes, each with all below it, and the number of nodes."""
    kept: set[int] = set()
    count = 0
    waiting = [(-root.weight_ns, count, root)]
    while waiting:
        _, _, node = heappop(waiting)
        if len(kept) < most:
            kept.add(id(node))
        for below in node.below.values():
            count += 1
            heappush(waiting, (-below.weight_ns, count, below))
    return kept, count + 1


def _to_dict(node: _Node, kept: set[int]) -> dict[str, Any]:
    below = sorted(node.below.values(), key=lambda one: (-one.weight_ns, one.name))
    return {
        "name": node.name,
        "place": node.place,
        "own": node.own,
        **({"doing": node.doing} if node.doing else {}),
        "value": node.weight_ns,
        "children": [_to_dict(one, kept) for one in below if id(one) in kept],
    }
