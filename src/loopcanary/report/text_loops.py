"""Sessions and the health of their loops as lines of text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text

from loopcanary.model import SessionEnd
from loopcanary.model.units import format_duration, format_number
from loopcanary.report.guard_words import guard_words
from loopcanary.report.loop_figures import LoopFigures, figures_of
from loopcanary.report.text_pieces import INDENT, Page, labelled, name
from loopcanary.report.times import moment
from loopcanary.words.text import count_of, display_width
from loopcanary.words.waiting import share_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from loopcanary.model import LoopHealth, Session

_SESSIONS_MAX = 6
_LOOPS_MAX = 6
_NAME_WIDTH = 15
_COLUMNS = ("mean", "p50", "p90", "p99", "p99.9", "max")
_P999 = _COLUMNS.index("p99.9")


def sessions(known: Iterable[Session], page: Page) -> Iterator[Text]:
    """What ran, and how its loops did."""
    listed = list(known)
    if not listed:
        return
    delays = "".join(f"{column:>8}" for column in _COLUMNS)
    has_loops = any(loop.turns for session in listed[:_SESSIONS_MAX] for loop in session.loops)
    head = f"{'how long an event waits:':<26}{delays}" if has_loops else ""
    yield Text.assemble(("Runs", "bold"), (head.rjust(len(head) + 2), "dim"))
    for session in listed[:_SESSIONS_MAX]:
        yield from (Text.assemble(INDENT, line) for line in _session(session, page))
    if len(listed) > _SESSIONS_MAX:
        yield Text(f"{INDENT}and {len(listed) - _SESSIONS_MAX:,} before", "dim")


def _session(session: Session, page: Page) -> Iterator[Text]:
    version = f" {name(session.version)}" if session.version else ""
    who = f"{name(session.name)}{version} (pid {session.pid}, {name(session.python)})"
    yield Text.assemble(f"{moment(session.started_wall_ns)}  {who}, ", _end_words(session))
    if session.imported_wall_ns is not None:
        bundle = name(session.imported_from or "a bundle")
        words = f"on {name(session.host)}; imported {moment(session.imported_wall_ns)} from {bundle}"
        yield Text(f"  {words}", "dim")
    loops = [loop for loop in session.loops if loop.turns]
    for loop in loops[:_LOOPS_MAX]:
        yield from (Text.assemble("  ", line) for line in _loop(loop, page))
    if len(loops) > _LOOPS_MAX:
        yield Text(f"  and {count_of(len(loops) - _LOOPS_MAX, 'more loop')}", "dim")
    for line in labelled("", "; ".join(guard_words(session)), page):
        line.stylize("dim")
        yield Text.assemble("  ", line)


def _end_words(session: Session) -> Text:
    if session.is_running:
        return Text("running", "green")
    length = format_duration(max((session.ended_wall_ns or 0) - session.started_wall_ns, 0))
    if session.end is SessionEnd.RUNNING:
        return Text(f"seen for {length}")
    if session.end is SessionEnd.KILLED:
        return Text(f"killed after {length}", "bold red")
    return Text(f"ran {length}")


def _loop(loop: LoopHealth, page: Page) -> Iterator[Text]:
    label = name(loop.thread) if loop.kind == "asyncio" else f"{name(loop.thread)} {name(loop.kind)}"
    if display_width(label) > _NAME_WIDTH:
        yield Text(label)
        label = ""
    delays = (
        loop.delay_mean_ns,
        loop.delay_p50_ns,
        loop.delay_p90_ns,
        loop.delay_p99_ns,
        loop.delay_p999_ns,
        loop.delay_max_ns,
    )
    busy = f"{loop.utilization:.0%} busy"
    # A session that was stored before p99.9 was taken has 0 there.
    figures = "".join(
        f"{format_duration(delay) if delay or not loop.delay_p99_ns or index < _P999 else '-':>8}"
        for index, delay in enumerate(delays)
    )
    yield Text.assemble(f"{label:<{_NAME_WIDTH}} {busy:>8}", ("  " + figures)[2:], style="")
    narrower = replace(page, width=page.width - len(INDENT) - 2)
    for line in labelled("", "; ".join(_more(figures_of(loop))), narrower):
        line.stylize("dim")
        yield Text.assemble("  ", line)


def _more(loop: LoopFigures) -> Iterator[str]:
    if loop.stalled_s_per_hour is not None:
        stalls = f" ({count_of(loop.stalls, 'stall')})" if loop.stalls else ""
        yield f"stalled {format_number(loop.stalled_s_per_hour)} s an hour{stalls}"
    if loop.callbacks_per_s is not None and loop.turns_per_s is not None:
        turns = format_number(loop.turns_per_s)
        yield f"{format_number(loop.callbacks_per_s)} callbacks/s in {turns} turns/s"
    if loop.callback_weighted_ns is not None:
        yield f"a callback lasts {format_duration(loop.callback_weighted_ns)} (weighted by time)"
    if loop.congested is not None:
        yield f"congested {share_words(loop.congested)} of the time"
    if loop.gc_ns is not None:
        yield f"gc {format_duration(loop.gc_ns)}"
    if loop.run_queue is not None:
        yield f"{share_words(loop.run_queue)} ready and not run"
