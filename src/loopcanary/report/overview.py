"""The whole report: bugs, latest stalls, other issues, runs with their loops, frames and input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.document.makers import dim, facts, line, name, number, said, sentences, strong
from loopcanary.document.parts import (
    Block,
    Document,
    Head,
    Heading,
    Indented,
    Piece,
    Pieces,
    Table,
    TableRow,
    Tone,
)
from loopcanary.document.verdict import advice, held_by, holders_of, spot, verdict, waited_on, where_held
from loopcanary.model import Cause
from loopcanary.model.units import format_duration
from loopcanary.report.anywhere import ANYWHERE, is_anywhere
from loopcanary.report.bug import latest, seen, session_of, sums
from loopcanary.report.figures.gain_words import gain_words
from loopcanary.report.issues import issues_part
from loopcanary.report.runs import runs_part
from loopcanary.report.stall import NOTHING, stall_body
from loopcanary.report.times import age
from loopcanary.report.traces import trace_parts
from loopcanary.words.commands import reading
from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.model import Stall
    from loopcanary.model.search import IssueGroup
    from loopcanary.report.model import Report

IN_FULL = 3
"""Bugs that a terminal shows in full: those that took most time."""
_STACKS_MAX = 3
_CALLS_NOTHING = frozenset({Cause.BURST, Cause.GIL, Cause.HOST})
"""Causes whose title says more than the place."""
_HELD = {Cause.GIL: "held the GIL", Cause.LOCK: "held the lock"}
_TREND_TONES = {"rising": Tone.ALARM, "falling": Tone.GOOD}
_TREND = 5
"""The column that is left out where no bug has a trend."""


def overview(report: Report, *, in_detail: bool) -> Document:
    """The report. `in_detail`: everything about each bug's longest stall, for readers without a terminal."""
    return Document(
        (
            *(_nothing(report) if report.is_empty else _bugs(report, in_detail=in_detail)),
            *issues_part(report),
            *runs_part(report.sessions, in_detail=in_detail),
            *trace_parts(report.sessions),
        )
    )


def _nothing(report: Report) -> Iterator[Block]:
    yield Heading(said(strong("No stall was recorded.")))
    yield from (line(dim("store "), printable(str(store))) for store in report.stores)


def _bugs(report: Report, *, in_detail: bool) -> Iterator[Block]:
    found = report.sums
    watched = f"; watched for {format_duration(report.watched.total_ns)}" if report.watched.total_ns else ""
    yield Heading(
        said(
            strong(f"{count_of(found.issues, 'stall')} in {count_of(found.groups, 'bug')}"),
            f", {format_duration(found.total_ns)} in all{watched}",
        )
    )
    yield NOTHING
    yield _table(report, in_detail=in_detail)
    left_out = found.groups - len(report.groups)
    if left_out > 0:
        yield Indented((line(dim(f"and {count_of(left_out, 'more bug')} (--limit 0 shows all)")),))
    yield Indented((line(dim(f"Details of a bug: {reading('show 1', report.stores)}")),))
    yield from latest(report, numbers=True)


def _table(report: Report, *, in_detail: bool) -> Table:
    columns = [
        *(Head(words, is_number=True) for words in ("#", "total", "count", "median", "max")),
        Head("trend"),
        Head("last", is_number=True),
        Head("cause"),
        Head("bug"),
        Head("where", is_short_form=True),
    ]
    rows = [_row(at, group, report, in_detail=in_detail) for at, group in enumerate(report.groups, start=1)]
    if not any(row.cells[_TREND] for row in rows):
        del columns[_TREND]
        rows = [
            TableRow((*row.cells[:_TREND], *row.cells[_TREND + 1 :]), row.title, row.below) for row in rows
        ]
    return Table(tuple(columns), tuple(rows), is_airy=True)


def _row(at: int, group: IssueGroup, report: Report, *, in_detail: bool) -> TableRow:
    figures = report.figures.get(group.fingerprint)
    trend = figures.trend.direction.value if figures else ""
    worst = report.worst.get(group.fingerprint)
    cells = (
        said(dim(str(at))),
        said(number(format_duration(group.total_ns))),
        said(f"{group.count:,}"),
        said(format_duration(group.p50_ns)),
        said(format_duration(group.max_ns)),
        said(Piece(trend if trend != "too few" else "", _TREND_TONES.get(trend, Tone.DIM))),
        said(age(group.last_wall_ns, report.generated_wall_ns)),
        said(strong(group.cause.value)),
        said(Piece(printable(group.fingerprint, 40), Tone.DIM)),
        _place(group, worst),
    )
    below: tuple[Block, ...] = ()
    if in_detail:
        below = tuple(_in_detail(group, worst, report))
    elif at <= IN_FULL:
        below = tuple(_facts(group, worst, report))
    return TableRow(cells, said(f"{at}. ", printable(group.title, 200)), below)


def _place(group: IssueGroup, worst: Stall | None) -> Pieces:
    if is_anywhere(group):
        return said(dim(ANYWHERE))
    holder = worst.holder if worst is not None and group.cause in _HELD else None
    if holder is not None and holder.culprit is not None:
        # Where the thread waited is chance; who made it wait is the bug.
        did = _HELD[group.cause] if holder.lock != "thread" else "was waited for"
        return said(spot(holder.culprit, group.cause), f" {did}")
    if group.culprit is None:
        return said(printable(group.title, 100))
    return spot(group.culprit, group.cause)


def _facts(group: IssueGroup, worst: Stall | None, report: Report) -> Iterator[Block]:
    """What one must know at once."""
    figures = report.figures.get(group.fingerprint)
    if group.cause in _CALLS_NOTHING or group.culprit is None:
        yield Heading(said(strong(printable(group.title, 300))))
    if is_anywhere(group):
        yield line(dim(ANYWHERE))
    elif group.culprit is not None:
        holder = worst.holder if worst is not None and group.cause in _HELD else None
        yield from where_held(group.culprit, group.cause, holder)
    yield line(verdict(group.cause, worst))
    gain = ", ".join(gain_words(figures.gains)) if figures else ""
    if worst is None:
        yield facts(("gain", gain))
        return
    holders = holders_of(worst)
    yield facts(
        ("waited on", waited_on(worst)),
        ("held by", held_by(holders[0], worst.cause, is_placed=group.cause in _HELD) if holders else None),
        ("and by", count_of(len(holders) - 1, "more thread") if len(holders) > 1 else None),
        ("gain", gain),
        ("try", advice(worst.advice)),
    )


def _in_detail(group: IssueGroup, worst: Stall | None, report: Report) -> Iterator[Block]:
    yield sums(group)
    yield seen(group, report.figures.get(group.fingerprint), report.generated_wall_ns)
    if worst is None:
        yield line(verdict(group.cause, None))
        yield facts(("bug", name(group.fingerprint, 300)))
        return
    if is_anywhere(group):
        yield sentences(dim(f"{ANYWHERE}. The longest one:"))
    yield from stall_body(worst, session_of(report, worst), stacks_max=_STACKS_MAX)
