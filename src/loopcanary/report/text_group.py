"""One group with what its stalls tell together, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from loopcanary.model.units import format_duration
from loopcanary.report import text_pieces as pieces
from loopcanary.report.history import bars
from loopcanary.report.text_groups import gain_lines
from loopcanary.report.text_pieces import INDENT, Page
from loopcanary.report.times import age, moment, span
from loopcanary.report.trend import trend_words
from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.model.search import StallGroup
    from loopcanary.report.affected import Counts
    from loopcanary.report.model import Figures, GroupDetails, Report

_NAMES_MAX = 5


def group_lines(report: Report, page: Page) -> Iterator[Text]:
    """Sums, trend, distribution over time, gains, whom it struck, and why these stalls are one group."""
    group = report.groups[0]
    figures = report.figures.get(group.fingerprint)
    yield Text(printable(group.title, page.width), "bold")
    yield from (Text.assemble(INDENT, line) for line in _sums(group, figures, report, page))
    if report.details is not None:
        yield from (Text.assemble(INDENT, line) for line in _details(report.details, page))
    yield Text()


def _sums(group: StallGroup, figures: Figures | None, report: Report, page: Page) -> Iterator[Text]:
    lengths = f"median {format_duration(group.p50_ns)}, max {format_duration(group.max_ns)}"
    yield Text.assemble(
        (f"{format_duration(group.total_ns)} in {count_of(group.count, 'stall')}", "bold yellow"),
        f", {lengths}, {group.cause.value}",
    )
    last = age(group.last_wall_ns, report.generated_wall_ns)
    ago = "just now" if last == "now" else f"the last {last} ago"
    yield Text.assemble(("seen     ", "dim"), f"{span(group.first_wall_ns, group.last_wall_ns)}, {ago}")
    if figures is not None:
        yield from pieces.labelled("trend    ", trend_words(figures.trend), page)
        yield from gain_lines(figures, page, "gain     ")


def _details(details: GroupDetails, page: Page) -> Iterator[Text]:
    yield from _history(details, page)
    affected = details.affected
    for label, counts in (
        ("scenes", affected.scenes),
        ("tasks", affected.tasks),
        ("callback", affected.callbacks),
        ("threads", affected.threads),
        ("causes", affected.causes if len(affected.causes) > 1 else ()),
    ):
        if counts:
            yield from pieces.labelled(f"{label:<9}", _counted(counts, affected.examined), page)
    if affected.startup:
        startup = f"{affected.startup:,} of {affected.examined:,} before the loop first waited"
        yield Text.assemble(("startup  ", "dim"), startup)
    yield from _why_grouped(details, page)


def _why_grouped(details: GroupDetails, page: Page) -> Iterator[Text]:
    if not details.parts:
        return
    parts = ", ".join(printable(part, 200).replace("=", " ", 1) for part in details.parts)
    yield from pieces.labelled("grouped  ", f"by {parts}", page)


def _counted(counts: Counts, examined: int) -> str:
    shown = [
        printable(name, 60) if count == examined else f"{printable(name, 60)} ({count:,})"
        for name, count in counts[:_NAMES_MAX]
    ]
    left = len(counts) - _NAMES_MAX
    return ", ".join([*shown, *([f"and {left:,} more"] if left > 0 else [])])


def _history(details: GroupDetails, page: Page) -> Iterator[Text]:
    marks = details.history
    if len(marks) < 2 or marks[0].began_wall_ns == marks[-1].began_wall_ns:
        return
    cells = max(min(page.width - 2 * len(INDENT) - 9, 60), 10)
    drawn = bars([(mark.began_wall_ns, mark.duration_ns) for mark in marks], cells, unicode=page.unicode)
    yield Text.assemble(("time     ", "dim"), (drawn, "yellow"))
    first, last = moment(marks[0].began_wall_ns), moment(marks[-1].began_wall_ns)
    same_day = first[:10] == last[:10]
    end = last[11:] if same_day else last
    yield Text(f"{'':9}{first}{end:>{max(cells - len(first), len(end) + 1)}}", "dim")
