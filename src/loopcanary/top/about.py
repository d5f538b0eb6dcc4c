"""Everything about one row in a few lines: what the columns had no room for."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.model.stall import StallState
from loopcanary.model.units import format_duration, format_number
from loopcanary.top.columns import NAME_MAX, Cell, age_words, percent, state_cell, work_words
from loopcanary.top.rows import LaneRow, State
from loopcanary.words.causes import cause_words, confidence_word
from loopcanary.words.text import count_of, place, printable

LINES = 5


def about(row: LaneRow, folder: str = "") -> list[list[Cell]]:
    """At most LINES lines, each of pieces with their looks."""
    return [list(line) for line in (_who(row), _now(row), _figures(row), _last(row), _source(row, folder))]


def _who(row: LaneRow) -> Iterator[Cell]:
    yield printable(row.program, NAME_MAX), "bold"
    thread = printable(row.thread, NAME_MAX) or f"thread {row.tid}"
    yield f"  pid {row.pid}, {printable(row.loop_kind, 20)} on {thread}", ""
    yield f", {printable(row.session.python, 40)}, run {printable(row.session.id, 48)}", "dim"


def _now(row: LaneRow) -> Iterator[Cell]:
    words, look = state_cell(row)
    if row.state in (State.KILLED, State.EXITED, State.CLOSED) and row.state_ns is not None:
        words = f"{row.state.value} {age_words(row.state_ns)} ago"
    yield words, look
    if row.work_ns is None:
        return
    if (work := work_words(row)) and (row.state is not State.BUSY or row.work is not None):
        if row.state is State.KILLED:
            yield f", after {format_duration(row.work_ns)}", ""
        elif row.work_ns != row.state_ns or row.state is State.BUSY:
            yield f", for {format_duration(row.work_ns)}", ""
        yield f" in {work}", "bold"
    if row.work is not None and row.work.scene:
        yield f", scene {printable(row.work.scene, NAME_MAX)}", ""
    yield f" (threshold {format_duration(row.threshold_ns)})", "dim"


def _figures(row: LaneRow) -> Iterator[Cell]:
    now = "" if row.utilization_now is None else f"{percent(row.utilization_now)} now, "
    yield f"busy {now}{percent(row.utilization)} ever", ""
    delays = row.delay_now or row.delay
    p50, p99 = format_duration(delays.p50_ns), format_duration(delays.p99_ns)
    yield f"; an event {'waits' if row.delay_now else 'waited'} {p50} (p50), {p99} (p99)", ""
    if row.callbacks_per_s is not None:
        yield f"; {format_number(row.callbacks_per_s)} callbacks/s", ""


def _last(row: LaneRow) -> Iterator[Cell]:
    stalls = (
        f"{count_of(row.stalls, 'stall')}, {format_duration(row.stalled_ns)}" if row.stalls else "no stall"
    )
    yield f"{stalls} so far", ""
    last = row.last
    if last is None:
        if row.latest_stall_ns is not None:
            yield f"; last: {format_duration(row.latest_stall_ns)}", ""
        return
    duration_ns, over = last.duration_ns, "last"
    if last.state is StallState.ONGOING:
        over = "now"
        duration_ns = max(duration_ns, row.state_ns or 0)
    yield f"; {over}: {format_duration(duration_ns)}, ", ""
    yield last.cause.value, "bold"
    yield f" ({confidence_word(last.confidence)}): {cause_words(last.cause, last)}", ""


def _source(row: LaneRow, folder: str) -> Iterator[Cell]:
    last = row.last
    if last is None or last.blamed is None:
        return
    culprit = last.blamed
    yield place(culprit.file, culprit.line, folder), "place"
    yield f" in {printable(culprit.qualname, NAME_MAX)}", ""
    if culprit.source:
        yield f"   {printable(culprit.source, 120)}", "dim"
