"""The health of loops as a Markdown table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model.units import format_duration, format_number
from loopcanary.report.guard_words import guard_words
from loopcanary.report.loop_figures import figures_of
from loopcanary.report.markdown_text import code, escaped
from loopcanary.words.waiting import share_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from loopcanary.model import LoopHealth, Session

_LOOPS_MAX = 20
_HEAD = (
    "loop",
    "busy",
    "delay mean",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "max",
    "stalled s/h",
    "callbacks/s",
    "turns/s",
    "callback by time",
    "congested",
    "gc",
    "not run",
)


def section(sessions: Iterable[Session]) -> Iterator[str]:
    """A row a loop that ran, newest session first; and what was not held against the code."""
    sessions = list(sessions)
    yield from _loops(sessions)
    told = [
        f"- {code(f'{session.name} {session.pid}')}: {escaped(words)}"
        for session in sessions
        if (words := "; ".join(guard_words(session)))
    ]
    yield from told[:_LOOPS_MAX]
    if told:
        yield ""


def _loops(sessions: list[Session]) -> Iterator[str]:
    loops = [(session, loop) for session in sessions for loop in session.loops if loop.turns]
    if not loops:
        return
    yield "### Loops"
    yield ""
    yield f"| {' | '.join(_HEAD)} |"
    yield f"|---{'|---:' * (len(_HEAD) - 1)}|"
    for session, loop in loops[:_LOOPS_MAX]:
        yield f"| {' | '.join(_cells(session, loop))} |"
    if len(loops) > _LOOPS_MAX:
        yield ""
        yield f"And {len(loops) - _LOOPS_MAX:,} before."
    yield ""


def _cells(session: Session, loop: LoopHealth) -> Iterator[str]:
    figures = figures_of(loop)
    yield code(f"{session.name} {session.pid}: {loop.thread}, {loop.kind}").replace("|", "\\|")
    yield share_words(loop.utilization)
    for delay_ns in (
        loop.delay_mean_ns,
        loop.delay_p50_ns,
        loop.delay_p90_ns,
        loop.delay_p99_ns,
        loop.delay_p999_ns,
        loop.delay_max_ns,
    ):
        yield format_duration(delay_ns)
    for rate in (figures.stalled_s_per_hour, figures.callbacks_per_s, figures.turns_per_s):
        yield "" if rate is None else format_number(rate)
    yield "" if figures.callback_weighted_ns is None else format_duration(figures.callback_weighted_ns)
    yield "" if figures.congested is None else share_words(figures.congested)
    yield "" if figures.gc_ns is None else format_duration(figures.gc_ns)
    yield "" if figures.run_queue is None else share_words(figures.run_queue)
