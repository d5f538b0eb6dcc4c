"""Rows as plain text, for scripts and people without a live screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopcanary.top.columns import COLUMNS, NOTHING, TableColumn, fitted, fitting, headline
from loopcanary.top.rows import LaneRow
from loopcanary.words.text import display_width


def lines(rows: Sequence[LaneRow], hidden: int, width: int | None) -> Iterator[str]:
    """A head, and a line for each row. `width`: of the terminal; None: every column, as wide as need be."""
    if not rows and not hidden:
        yield from NOTHING
        return
    yield headline(rows, hidden)
    if not rows:
        return
    table = _whole(rows) if width is None else fitting(width)
    yield " ".join(fitted(column.heading, size, to_right=column.to_right) for column, size in table).rstrip()
    for row in rows:
        cells = (fitted(column.cell(row)[0], size, to_right=column.to_right) for column, size in table)
        yield " ".join(cells).rstrip()


def _whole(rows: Sequence[LaneRow]) -> list[tuple[TableColumn, int]]:
    return [
        (
            column,
            max(display_width(text) for text in (column.heading, *(column.cell(row)[0] for row in rows))),
        )
        for column in COLUMNS
    ]
