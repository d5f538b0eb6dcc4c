"""A comparison for people at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from loopcanary.model import Cause
from loopcanary.report import text_pieces as pieces
from loopcanary.report.as_text import page_of, show
from loopcanary.report.comparison import Change
from loopcanary.report.diff_words import (
    count_words,
    load_note,
    side_words,
    stalled_words,
    unsure_words,
    verdict_words,
)
from loopcanary.report.rates import LEVEL
from loopcanary.report.text_pieces import INDENT, Page
from loopcanary.words.text import count_of, printable
from loopcanary.words.waiting import share_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from loopcanary.report.comparison import Compared, Comparison

_STYLES = {
    Change.NEW: "bold red",
    Change.WORSE: "red",
    Change.BETTER: "green",
    Change.GONE: "bold green",
    Change.UNCHANGED: "dim",
}


def show_comparison(comparison: Comparison, console: Console, *, limit: int) -> None:
    """Both sides, then the groups; at most `limit` of them, 0: all."""
    show(console, _lines(comparison, page_of(console), limit))


def _lines(comparison: Comparison, page: Page, limit: int) -> Iterator[Text]:
    yield from _sides(comparison)
    yield Text()
    if not comparison.groups:
        yield Text("No stall on either side.")
        return
    yield Text.assemble((verdict_words(comparison), "bold"))
    if note := load_note(comparison):
        yield Text(note, "yellow")
    yield Text()
    shown = comparison.groups[: limit or None]
    for one in shown:
        yield from _group(one, page)
    if len(comparison.groups) > len(shown):
        left = count_of(len(comparison.groups) - len(shown), "more place")
        yield Text(f"and {left} (--limit 0 shows all)", "dim")
        yield Text()
    yield Text(f"Ranges hold with {share_words(LEVEL)}; change is judged by stalled time per hour.", "dim")


def _sides(comparison: Comparison) -> Iterator[Text]:
    for name, side in (("A", comparison.before), ("B", comparison.after)):
        yield Text.assemble((f"{name}  ", "bold"), side_words(side))


def _group(one: Compared, page: Page) -> Iterator[Text]:
    unsure = unsure_words(one)
    yield Text.assemble(
        (f"{one.change.value:<9} ", _STYLES[one.change]),
        (printable(one.title, max(page.width - 10, 30)), "bold"),
    )
    # Where the GIL was waited for is chance; the title says who held it.
    culprit = one.culprit if one.cause is not Cause.GIL else None
    place = Text.assemble("  ", pieces.spot(culprit, page)) if culprit is not None else Text()
    yield Text.assemble(INDENT, (f"{one.cause.value:<10}", "bold"), place)
    yield Text.assemble(INDENT, ("stalled an hour ", "dim"), stalled_words(one))
    yield Text.assemble(INDENT, ("stalls an hour  ", "dim"), count_words(one))
    if unsure:
        yield Text(f"{INDENT}{unsure}", "yellow")
    yield Text.assemble(INDENT, ("bug ", "dim"), (printable(one.fingerprint), "dim"))
    yield Text()
