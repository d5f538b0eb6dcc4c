"""How long a loop lived, where its figures would be read as those of a whole run; what a tracer does."""

from __future__ import annotations

from loopcanary.model import LoopHealth, Session, TracerStatus
from loopcanary.model.units import format_duration
from loopcanary.words.text import printable

BRIEF_NS = 1_000_000_000
"""Rates per second of what lived for less say nothing."""


def life_words(loop: LoopHealth, session: Session) -> str:
    """`lived 4.2 ms`; empty where it lived for at least half of its run."""
    ended_ns = session.ended_wall_ns or session.started_wall_ns
    run_ns = max(ended_ns - session.started_wall_ns, *(one.window_ns for one in session.loops), 0)
    return f"lived {format_duration(loop.window_ns)}" if 2 * loop.window_ns < run_ns else ""


def tracer_words(tracer: TracerStatus) -> str:
    """`started; its steps took 0.2 ms`; `stopped, it failed: OSError: full; its steps took 2 ms`."""
    failed = "" if tracer.failed is None else f", it failed: {printable(tracer.failed, 200)}"
    return f"{tracer.state.value}{failed}; its steps took {format_duration(tracer.steps_ns)}"
