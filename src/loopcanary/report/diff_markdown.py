"""A comparison as Markdown, for a pull request or an issue tracker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model import Cause
from loopcanary.report.diff_words import (
    count_words,
    load_note,
    side_words,
    stalled_words,
    unsure_words,
    verdict_words,
)
from loopcanary.report.markdown_text import code, escaped
from loopcanary.report.rates import LEVEL
from loopcanary.words.text import count_of, place, printable
from loopcanary.words.waiting import share_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.report.comparison import Compared, Comparison


def render(comparison: Comparison, folder: str = "", limit: int = 0) -> str:
    """The comparison; paths below `folder` relative to it; at most `limit` groups, 0: all."""
    return "\n".join(_lines(comparison, folder, limit)) + "\n"


def _lines(comparison: Comparison, folder: str, limit: int) -> Iterator[str]:
    yield f"## {verdict_words(comparison) or 'No stall on either side'}"
    yield ""
    yield f"- **A**: {escaped(side_words(comparison.before))}"
    yield f"- **B**: {escaped(side_words(comparison.after))}"
    if note := load_note(comparison):
        yield f"- {note}"
    yield ""
    shown = comparison.groups[: limit or None]
    if not shown:
        return
    yield "| | what | where | stalled time an hour | stalls an hour |"
    yield "|---|---|---|---|---|"
    for one in shown:
        yield f"| {' | '.join(_cells(one, folder))} |"
    yield ""
    if len(comparison.groups) > len(shown):
        yield f"And {count_of(len(comparison.groups) - len(shown), 'more place')}."
        yield ""
    yield f"Ranges hold with {share_words(LEVEL)}; change is judged by stalled time per hour."


def _cells(one: Compared, folder: str) -> Iterator[str]:
    unsure = unsure_words(one)
    yield one.change.value + (f" ({unsure})" if unsure else "")
    yield f"{escaped(printable(one.title, 100))}, {one.cause.value}"
    culprit = None if one.cause is Cause.GIL else one.culprit
    # A bar ends a cell even inside a code span, unless escaped.
    spot = "" if culprit is None else code(place(culprit.file, culprit.line, folder)).replace("|", "\\|")
    yield spot
    yield stalled_words(one)
    yield count_words(one)
