"""The phases of a start and the calls of a slow method as lines of text, one inside the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from loopcanary.model.call_tree import levels
from loopcanary.model.issues.slow_method import ROWS_MAX
from loopcanary.model.issues.startup import PHASES_MAX
from loopcanary.model.units import format_duration
from loopcanary.words.text import count_of, place, printable
from loopcanary.words.traced import phase_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.model import SlowMethod, Startup
    from loopcanary.report.text_pieces import Page

_DEEPEST = 20
"""Deeper rows are not indented any further: there would be no room for their names."""
_LEAST = 16


def phase_lines(start: Startup, page: Page) -> Iterator[Text]:
    """Length, own time and name of each phase, in order."""
    if start.phases:
        yield Text(f"{'took':>8} {'itself':>8}", "dim")
    phases = start.phases[:PHASES_MAX]
    for phase, level in zip(phases, levels([phase.depth for phase in phases]), strict=True):
        yield _row((phase.duration_ns, phase.self_ns), level, phase_words(phase), "", page)
    left_out = start.left_out + len(start.phases) - len(phases)
    if left_out > 0:
        yield Text(f"and {count_of(left_out, 'short phase')}", "dim")


def call_lines(slow: SlowMethod, page: Page) -> Iterator[Text]:
    """Time, own time, number, function and place of each row."""
    if slow.rows:
        yield Text(f"{'took':>8} {'itself':>8}", "dim")
    rows = slow.rows[:ROWS_MAX]
    for row, level in zip(rows, levels([row.depth for row in rows]), strict=True):
        frame = row.frame
        times = f" x{row.count:,}" if row.count > 1 else ""
        words = f"{printable(frame.qualname, 80)}{times}"
        where = place(frame.file, frame.line, page.folder)
        line = _row((row.total_ns, row.self_ns), level, words, where, page)
        if row is slow.key_row:
            line.stylize("bold")
        yield line
    left_out = slow.left_out + len(slow.rows) - len(rows)
    if left_out > 0:
        own = f", {format_duration(slow.left_out_ns)} by themselves" if slow.left_out_ns > 0 else ""
        yield Text(f"and {count_of(left_out, 'short row')}{own}", "dim")


def _row(times: tuple[int, int], level: int, words: str, where: str, page: Page) -> Text:
    indent = "  " * min(level, _DEEPEST)
    room = max(page.width - 22 - len(indent), _LEAST)
    shown = printable(words, room)
    left = room - len(shown) - 2
    return Text.assemble(
        (f"{format_duration(times[0]):>8}", "yellow"),
        f" {format_duration(times[1]):>8}  {indent}{shown}",
        (f"  {printable(where, left)}" if where and left >= _LEAST else "", "dim"),
    )
