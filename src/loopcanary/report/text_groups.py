"""The list of groups as lines of text: a table, the first ones with all that one must know at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from loopcanary.model import Cause
from loopcanary.model.units import format_duration
from loopcanary.report import text_pieces as pieces
from loopcanary.report.anywhere import ANYWHERE, is_anywhere
from loopcanary.report.gain_words import gain_words
from loopcanary.report.text_pieces import INDENT, Page
from loopcanary.report.times import age
from loopcanary.words.text import display_width, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.model import Stall
    from loopcanary.model.search import StallGroup
    from loopcanary.report.model import Figures, Report

IN_FULL = 3
"""So many groups are told in full, those that took most time."""
_CALLS_NOTHING = frozenset({Cause.BURST, Cause.GIL, Cause.HOST})
"""Causes whose title says more than the place."""

_HEAD = f"{'#':>2} {'total':>7} {'count':>6} {'median':>7} {'max':>7}  {'trend':<7} {'last':>6}  "
_HEAD += f"{'cause':<10} bug"


def table(report: Report, page: Page) -> Iterator[Text]:
    """All groups of the report."""
    yield Text(_HEAD, "dim")
    for number, group in enumerate(report.groups, start=1):
        figures = report.figures.get(group.fingerprint)
        row = _row(number, group, figures, report.generated_wall_ns)
        if number > IN_FULL:
            yield from _short(row, _place(group, report.worst.get(group.fingerprint), page), page)
            continue
        yield row
        worst = report.worst.get(group.fingerprint)
        yield from (Text.assemble(INDENT, line) for line in _facts(group, worst, figures, page))
        yield Text()


def _row(number: int, group: StallGroup, figures: Figures | None, now_wall_ns: int) -> Text:
    direction = figures.trend.direction.value if figures else ""
    return Text.assemble(
        (f"{number:>2} ", "dim"),
        (f"{format_duration(group.total_ns):>7}", "bold yellow"),
        f" {group.count:>6,} {format_duration(group.p50_ns):>7} {format_duration(group.max_ns):>7}  ",
        (f"{direction:<7}", _TREND_STYLES.get(direction, "dim")),
        f" {age(group.last_wall_ns, now_wall_ns):>6}  ",
        (f"{group.cause.value:<10} ", "bold"),
        (printable(group.fingerprint, 40), "dim"),
    )


_HELD = {Cause.GIL: "held the GIL", Cause.LOCK: "held the lock"}
_TREND_STYLES = {"rising": "bold red", "falling": "green"}


def _short(row: Text, place: Text, page: Page) -> Iterator[Text]:
    if display_width(row.plain) + display_width(place.plain) + 2 <= page.width:
        yield Text.assemble(row, "  ", place)
    else:
        yield row
        yield Text.assemble(INDENT, place)


def _place(group: StallGroup, worst: Stall | None, page: Page) -> Text:
    if is_anywhere(group):
        return Text(ANYWHERE, "dim")
    if group.cause in _HELD and worst is not None and worst.holder is not None and worst.holder.culprit:
        # Where the thread waited is chance; who made it wait is the bug.
        did = _HELD[group.cause] if worst.holder.lock != "thread" else "was waited for"
        return Text.assemble(pieces.spot(worst.holder.culprit, page), f" {did}")
    if group.culprit is None:
        return Text(printable(group.title, page.width - len(INDENT)))
    return pieces.spot(group.culprit, page)


def _facts(group: StallGroup, worst: Stall | None, figures: Figures | None, page: Page) -> Iterator[Text]:
    if group.cause in _CALLS_NOTHING or group.culprit is None:
        yield Text(printable(group.title, page.width - len(INDENT)), "bold")
    if is_anywhere(group):
        yield Text(ANYWHERE, "dim")
    elif group.culprit is not None:
        yield from pieces.where(group.culprit, group.cause, page)
    yield pieces.verdict(group.cause, worst)
    if worst is not None:
        yield from pieces.waited_on(worst)
        yield from pieces.holders(worst, page, most=1)
    yield from gain_lines(figures, page)
    if worst is not None:
        yield from pieces.advice(worst.advice, page)


def gain_lines(figures: Figures | None, page: Page, label: str = "gain ") -> Iterator[Text]:
    """What the group's end would bring."""
    words = ", ".join(gain_words(figures.gains)) if figures else ""
    if words:
        yield from pieces.labelled(label, words, page)
