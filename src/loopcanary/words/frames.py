"""Figures of frames, input and idle work in words."""

from __future__ import annotations

from loopcanary.model import FrameFigures, IdleFigures, InputFigures, Session
from loopcanary.model.figures import LEVELS
from loopcanary.model.units import format_duration, format_number
from loopcanary.words.text import count_of, printable
from loopcanary.words.waiting import share_words

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
    """How long input, or a server's answers, took on one thread."""
    longest = "slowest of these" if figures.is_sampled else "worst"
    return (
        f"{timed_words(figures)}: p50 {format_duration(figures.p50_ns)}, "
        f"p98 {format_duration(figures.p98_ns)}, {longest} {worst_words(figures)}; "
        f"{share_words(waited_share(figures))} of it waiting"
    )


def timed_words(figures: InputFigures) -> str:
    """How many were timed: `12 events`, `20 of some 320 requests timed`."""
    if not figures.is_sampled:
        return count_of(figures.events, "event")
    asked = f"{figures.events * figures.one_of:,} {printable(figures.loop, NAME_MAX)}"
    return f"{figures.events:,} of some {asked} timed"


def worst_words(figures: InputFigures) -> str:
    """The longest of those that were timed."""
    name = f" ({printable(figures.worst, NAME_MAX)})" if figures.worst else ""
    return f"{format_duration(figures.worst_ns)}{name}"


def waited_share(figures: InputFigures) -> float:
    """Share of the events' time in which they waited for the loop, 0 to 1."""
    return figures.queued_ns / figures.lag_ns if figures.lag_ns else 0.0


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


def requests_of(session: Session) -> list[InputFigures]:
    """The figures of servers' requests, by thread."""
    return [one for one in session.traces.input if one.is_sampled and one.events]


def input_of(session: Session) -> list[InputFigures]:
    """The figures of input to windows and games, by thread."""
    return [one for one in session.traces.input if not one.is_sampled and one.events]
