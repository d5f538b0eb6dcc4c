"""The columns of a row, and those that fit into a width: the least important ones go first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from loopcanary.late_dataclass import dataclass
from loopcanary.model.stall import StallState
from loopcanary.model.units import format_duration, format_number
from loopcanary.top.rows import LaneRow, State
from loopcanary.words.text import count_of, display_width, place, printable

NAME_MAX: Final = 60
_GAP: Final = 1

Cell = tuple[str, str]
"""Text and look: `bad`, `warn`, `good`, `dim` or nothing."""

LOOKS: Final = {
    State.HUNG: "bad",
    State.STALLED: "warn",
    State.BUSY: "good",
    State.IDLE: "dim",
    State.KILLED: "bad",
    State.EXITED: "dim",
    State.CLOSED: "dim",
}
_LATE: Final = (State.HUNG, State.STALLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column; of importance 1 stays longest. With room columns grow to `most`, in the order of `grows`."""

    heading: str
    importance: int
    width: int
    cell: Callable[[LaneRow], Cell]
    most: int = 0
    grows: int = 0
    to_right: bool = False


def state_cell(row: LaneRow) -> Cell:
    """`hung 12.3 s`, `idle`, `killed 2 m`."""
    look = LOOKS[row.state]
    if row.state in (State.BUSY, State.IDLE) or row.state_ns is None:
        return row.state.value, look
    length = format_duration(row.state_ns) if row.state.is_live else age_words(row.state_ns)
    return f"{row.state.value} {length}", look


def age_words(ns: int) -> str:
    """One unit: `40 s`, `3 m`, `2 h`, `5 d`."""
    seconds = ns // 1_000_000_000
    for unit, length, least in (("d", 86_400, 172_800), ("h", 3_600, 7_200), ("m", 60, 120)):
        if seconds >= least:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def work_words(row: LaneRow) -> str:
    """The callback and task that it is in, if they are known."""
    if row.work is None or row.work_ns is None:
        return ""
    callback, task = row.work.callback or "", row.work.task
    named = f"{callback} ({task})" if task and task != callback else callback
    return printable(named, NAME_MAX)


def last_words(row: LaneRow, folder: str = "") -> str:
    """Duration, cause and place of the latest stall: `251 ms sleep shop/pricing.py:13`."""
    last = row.last
    if last is None:
        return ""
    # The verdict on a stall that goes on is a few seconds old.
    duration_ns = last.duration_ns
    if last.state is StallState.ONGOING and row.state in _LATE:
        duration_ns = max(duration_ns, row.state_ns or 0)
    where = "" if last.blamed is None else place(last.blamed.file, last.blamed.line, folder)
    return f"{format_duration(duration_ns)} {last.cause.value} {where}".rstrip()


def _work_cell(row: LaneRow) -> Cell:
    return work_words(row), "warn" if row.state in _LATE else ""


def _work_ns_cell(row: LaneRow) -> Cell:
    if row.work_ns is None or row.work is None:
        return "", ""
    return format_duration(row.work_ns), "warn" if row.state in _LATE else ""


def _last_cell(row: LaneRow) -> Cell:
    last = row.last
    if last is None:
        return ("" if row.latest_stall_ns is None else format_duration(row.latest_stall_ns)), ""
    words = last_words(row)
    if last.blamed is not None:  # the end of a path says most
        head = words[: len(words) - len(place(last.blamed.file, last.blamed.line, ""))]
        words = f"{head}{place(last.blamed.file.rpartition('/')[2], last.blamed.line, '')}"
    return words, "warn" if last.state is not StallState.ENDED else ""


def percent(value: float) -> str:
    """`62 %`."""
    return f"{value * 100:.0f} %"


def _share(value: float | None, *, is_now: bool) -> Cell:
    if value is None:
        return "-", "dim"
    return percent(value), ("bad" if value >= 0.9 else "warn" if value >= 0.7 else "") if is_now else ""


def _delay(row: LaneRow, name: str) -> Cell:
    delays = row.delay_now
    if delays is None or not row.state.is_live:
        return "-", "dim"
    ns = delays.p50_ns if name == "p50" else delays.p99_ns
    look = "bad" if ns > row.threshold_ns > 0 else "warn" if 2 * ns > row.threshold_ns > 0 else ""
    return format_duration(ns) if ns else "0", look


def _per_s(row: LaneRow) -> Cell:
    if row.callbacks_per_s is None:
        return "-", "dim"
    return format_number(row.callbacks_per_s), ""


COLUMNS: Final = (
    TableColumn(heading="state", importance=1, width=14, cell=state_cell),
    TableColumn(heading="pid", importance=2, width=7, cell=lambda row: (str(row.pid), ""), to_right=True),
    TableColumn(
        heading="program",
        importance=3,
        width=14,
        most=24,
        grows=3,
        cell=lambda row: (printable(row.program, NAME_MAX), "bold"),
    ),
    TableColumn(heading="loop", importance=11, width=8, cell=lambda row: (printable(row.loop_kind, 12), "")),
    TableColumn(heading="thread", importance=13, width=10, cell=lambda row: (printable(row.thread, 24), "")),
    TableColumn(
        heading="busy",
        importance=4,
        width=5,
        cell=lambda row: _share(row.utilization_now, is_now=True),
        to_right=True,
    ),
    TableColumn(
        heading="ever",
        importance=14,
        width=5,
        cell=lambda row: _share(row.utilization, is_now=False),
        to_right=True,
    ),
    TableColumn(heading="p50", importance=12, width=8, cell=lambda row: _delay(row, "p50"), to_right=True),
    TableColumn(heading="p99", importance=6, width=8, cell=lambda row: _delay(row, "p99"), to_right=True),
    TableColumn(heading="call/s", importance=10, width=7, cell=_per_s, to_right=True),
    TableColumn(
        heading="stalls",
        importance=7,
        width=6,
        cell=lambda row: (format_number(row.stalls), "" if row.stalls else "dim"),
        to_right=True,
    ),
    TableColumn(heading="in callback", importance=5, width=18, most=36, grows=2, cell=_work_cell),
    TableColumn(heading="for", importance=9, width=8, cell=_work_ns_cell, to_right=True),
    TableColumn(heading="last stall", importance=8, width=26, most=48, grows=1, cell=_last_cell),
)


def fitting(width: int) -> list[tuple[TableColumn, int]]:
    """The columns that fit into so many characters, each with its width."""
    left = width
    kept: set[int] = set()
    for column in sorted(COLUMNS, key=lambda one: one.importance):
        needed = column.width + (_GAP if kept else 0)
        if needed > left:
            break
        kept.add(column.importance)
        left -= needed
    shown = [column for column in COLUMNS if column.importance in kept]
    widths = {column.importance: column.width for column in shown}
    for column in sorted(shown, key=lambda one: one.grows or len(COLUMNS)):
        more = min(left, max(column.most - column.width, 0))
        widths[column.importance] += more
        left -= more
    return [(column, widths[column.importance]) for column in shown]


def fitted(text: str, width: int, *, to_right: bool = False) -> str:
    """The text in exactly so many terminal columns, cut in the middle if it is longer."""
    limit = width
    cut = text
    while display_width(cut) > width and limit >= 0:
        cut, limit = printable(text, limit), limit - 1
    blank = " " * (width - display_width(cut))
    return blank + cut if to_right else cut + blank


def headline(rows: Sequence[LaneRow], hidden: int, key: str = "") -> str:
    """`3 programs, 4 loops, 2 not shown (key a): 1 hung, 1 killed`; the key, which shows the hidden rows, is
    not at the end, which a narrow screen cuts."""
    programs = count_of(len({row.key[0] for row in rows}), "program")
    counts = [(state, sum(row.state is state for row in rows)) for state in State]
    told = ", ".join(f"{count} {state.value}" for state, count in counts if count)
    aside = f", {hidden} not shown{key and f' (key {key})'}" if hidden else ""
    return f"{programs}, {count_of(len(rows), 'loop')}{aside}{': ' + told if told else ''}"


NOTHING = (
    "No watched program of yours runs now.",
    "Start one:        loopcanary run app.py        (or: -m uvicorn shop:app)",
    "One that runs:    loopcanary attach PID        (CPython 3.14 and later)",
    "From its code:    loopcanary.install()",
    "Past runs:        loopcanary report",
)
