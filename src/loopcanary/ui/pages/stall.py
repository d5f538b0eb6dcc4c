"""The drawings of a stall's page: its course, earlier work, flames, other threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from loopcanary.document.stacks import Fold, folded
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, StackFrame, Stall, ThreadView
from loopcanary.model.loop_frames import work_of
from loopcanary.ui.pages.earlier import EarlierView, earlier_view
from loopcanary.ui.pages.flame import DEPTH_MAX, Flame, flame, holding_flame, leaf_of, node_of
from loopcanary.ui.pages.timeline import TimelineView, timeline_view


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRow:
    """Another thread, as it was when the stall became a hang."""

    thread: ThreadView
    rows: tuple[StackFrame | Fold, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StallSections:
    """The drawings of a stall's page."""

    stall: Stall
    timeline: TimelineView | None
    course: dict[str, Any] | None
    """The data of the cursor over the timeline."""
    earlier: EarlierView | None
    threads: tuple[ThreadRow, ...]
    flame: Flame
    holding: Flame | None
    """The flame of the threads that held the GIL or lock."""


def sections(stall: Stall) -> StallSections:
    return StallSections(
        stall=stall,
        timeline=(timeline := timeline_view(stall)),
        course=_course(stall, timeline) if timeline is not None else None,
        earlier=earlier_view(stall),
        threads=tuple(ThreadRow(thread=one, rows=tuple(folded(one.frames))) for one in stall.threads),
        flame=flame([stall]),
        holding=holding_flame([stall]),
    )


DRAWN: Mapping[str, Callable[[Any], StallSections]] = {"stall": sections}
"""By the name of a kind, what its page draws in place of the parts that reports have."""


def ranked_stacks(issue: Issue) -> list[int]:
    """Indices of its stacks, the heaviest first, as its page shows them."""
    return sorted(range(len(issue.stacks)), key=lambda index: -issue.stacks[index].weight_ns)


def _course(stall: Stall, view: TimelineView) -> dict[str, Any]:
    """Times in ns from the stall's begin.

    `spans`: begin, length, place of the stack on the page (-1: none), and its leaf; `stacks`: of each the
    `frames` of the flame graph, outermost first; `lines`: of each the own lines, innermost first.
    """
    order = ranked_stacks(stall)
    place_of = {index: place for place, index in enumerate(order)}
    works = [work_of(stall.stacks[index].frames) for index in order]
    frames: dict[tuple[str, str], int] = {}
    shown: list[dict[str, Any]] = []
    for frame in chain.from_iterable(works):
        if (key := (frame.qualname, frame.file)) not in frames:
            frames[key] = len(shown)
            shown.append(node_of(frame))
    spans = stall.timeline.spans if stall.timeline is not None else ()
    return {
        "begin": view.begin_ns,
        "length": view.length_ns,
        "spans": [
            [
                span.offset_ns,
                span.length_ns,
                place_of.get(-1 if span.stack is None else span.stack, -1),
                leaf_of(span.activity),
            ]
            for span in spans
        ],
        "frames": shown,
        "stacks": [
            [frames[frame.qualname, frame.file] for frame in reversed(work[-DEPTH_MAX:])] for work in works
        ],
        "lines": [[f"{frame.file}:{frame.line}" for frame in work if frame.in_app] for work in works],
    }
