"""Figures of frames, input and idle work in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model.figures.frames import LEVELS
from loopcanary.model.units import format_duration, format_number
from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopcanary.model import FrameFigures, IdleFigures, InputFigures, Session

NAME_MAX = 60


def fps_words(figures: FrameFigures) -> str:
    """Frames a second, of those that were expected."""
    return f"{format_number(figures.fps)} of {format_number(figures.refresh_hz)} fps"


def scene_name(scene: str | None) -> str:
    """The scene; one without a name has a word."""
    return printable(scene, NAME_MAX) if scene else "(no scene)"


def level_words(figures: FrameFigures) -> str:
    """Frames at each level that has any, and what they dropped; best first."""
    parts = [
        f"{level.value} {frames:,}" + (f" (dropped {dropped:,})" if dropped else "")
        for level, frames, dropped in zip(LEVELS, figures.drop_level, figures.drop_sum, strict=True)
        if frames
    ]
    return ", ".join(parts)


def frozen_words(figures: FrameFigures) -> str:
    """Frames of more than 700 ms; empty without one."""
    if not figures.frozen:
        return ""
    return f"{count_of(figures.frozen, 'frame')} over 700 ms ({figures.frozen_share * 100:.2f} %)"


def input_words(figures: InputFigures) -> str:
    """How long input took on one thread."""
    worst = f" ({printable(figures.worst, NAME_MAX)})" if figures.worst else ""
    waited = figures.queued_ns / figures.lag_ns if figures.lag_ns else 0.0
    return (
        f"{count_of(figures.events, 'event')}: p50 {format_duration(figures.p50_ns)}, "
        f"p98 {format_duration(figures.p98_ns)}, worst {format_duration(figures.worst_ns)}{worst}; "
        f"{waited * 100:.0f} % of it waiting"
    )


def idle_words(figures: IdleFigures) -> str:
    """One kind of idle work."""
    spun = f", kept the loop from waiting for {format_duration(figures.spun_ns)}" if figures.spun_ns else ""
    return (
        f"{printable(figures.name, NAME_MAX)}: {count_of(figures.runs, 'run')}, "
        f"{format_duration(figures.total_ns)} in all, longest {format_duration(figures.longest_ns)}{spun}"
    )


def thread_words(thread: str, loop: str) -> str:
    """Where: the thread and the kind of its loop."""
    return f"{printable(thread, NAME_MAX)} ({printable(loop, NAME_MAX)})"


def traced(sessions: Sequence[Session]) -> list[Session]:
    """Those that have frames, input or idle work to show."""
    return [session for session in sessions if not session.traces.is_empty]
