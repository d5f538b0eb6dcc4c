"""What the page of a stall draws: its course, what ran before it, flames, other threads."""

from __future__ import annotations

from itertools import chain
from typing import Any

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, StackFrame, Stall, ThreadView
from loopcanary.model.loop_frames import work_of
from loopcanary.report.folding import Fold, folded
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
    """What the template shows of a stall, and of no other kind."""

    stall: Stall
    timeline: TimelineView | None
    course: dict[str, Any] | None
    """What the cursor over the timeline needs; None where there is no timeline."""
    earlier: EarlierView | None
    threads: tuple[ThreadRow, ...]
    flame: Flame
    holding: Flame | None
    """Of the threads that held what the stalled one waited for."""


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


def ranked_stacks(issue: Issue) -> list[int]:
    """Indices of its stacks, the heaviest first: the order in which its page has them."""
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
