"""What the page of a stall draws: its course, what ran before it, flames, other threads."""

from __future__ import annotations

from dataclasses import dataclass

from loopcanary.model import StackFrame, Stall, ThreadView
from loopcanary.report.folding import Fold, folded
from loopcanary.ui.pages.earlier import EarlierView, earlier_view
from loopcanary.ui.pages.flame import Flame, flame, holding_flame
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
    earlier: EarlierView | None
    threads: tuple[ThreadRow, ...]
    flame: Flame
    holding: Flame | None
    """Of the threads that held what the stalled one waited for."""


def sections(stall: Stall) -> StallSections:
    return StallSections(
        stall=stall,
        timeline=timeline_view(stall),
        earlier=earlier_view(stall),
        threads=tuple(ThreadRow(thread=one, rows=tuple(folded(one.frames))) for one in stall.threads),
        flame=flame([stall]),
        holding=holding_flame([stall]),
    )
