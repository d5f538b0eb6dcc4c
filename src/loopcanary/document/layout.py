"""Blocks as lines for a terminal, as wide as it is.

A wrapped `path:line` cannot be clicked, so a line with a place in it is never wrapped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from loopcanary.document.parts import (
    Bars,
    Block,
    Document,
    Facts,
    Frames,
    Heading,
    Indented,
    Items,
    Paragraph,
    Part,
    Piece,
    Pieces,
    Records,
    Shares,
    SourceLine,
    Table,
    Tone,
    Tree,
)
from loopcanary.document.wrapping import fitting, shown, width_of, wrapped
from loopcanary.words.text import underlined

_BARS = " ▁▂▃▄▅▆▇█"
_PLAIN_BARS = " .:-=+*#@"
_SHARES_WIDTH = 16
_BARS_LEAST = 10
_TREE_DEEPEST = 20
_TREE_LEAST = 16
_GAP = "  "
EMPTY: Pieces = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What the lines are set for."""

    width: int = 80
    folder: str = ""
    """Paths below it are shown relative to it."""
    unicode: bool = True
    indent: int = 3
    labels: int = 9
    """Columns of the labels of facts; 0: each as long as it is, with a colon."""

    def narrower(self, by: int) -> Sheet:
        """The sheet beside an indent."""
        return Sheet(
            width=max(self.width - by, 20),
            folder=self.folder,
            unicode=self.unicode,
            indent=self.indent,
            labels=self.labels,
        )


def lines(document: Document, sheet: Sheet) -> Iterator[Pieces]:
    """The document's lines; text and paths of their pieces are as they are to be shown."""
    is_free = True
    for line in _all(document.blocks, sheet):
        if line or not is_free:
            yield line
        is_free = not line


def _all(blocks: Iterable[Block], sheet: Sheet) -> Iterator[Pieces]:
    for block in blocks:
        yield from _lines(block, sheet)


def _lines(block: Block, sheet: Sheet) -> Iterator[Pieces]:  # noqa: C901, PLR0912 - a case a block
    match block:
        case Heading(pieces):
            yield fitting(shown(pieces, sheet.folder), sheet.width)
        case Paragraph(pieces, wraps):
            whole = shown(pieces, sheet.folder)
            yield from wrapped(whole, sheet.width) if wraps else (whole,)
        case Facts(rows):
            for row in rows:
                yield from _labelled(_label(row.label, sheet), row.pieces, sheet)
        case Items(rows):
            for pieces in rows:
                yield from _labelled("- ", pieces, sheet)
        case SourceLine():
            yield from _source(block, sheet)
        case Table():
            yield from _table(block, sheet)
        case Records():
            yield from _records(block, sheet)
        case Tree():
            yield from _tree(block, sheet)
        case Frames():
            yield from _frames(block, sheet)
        case Shares():
            yield from _shares(block, sheet)
        case Bars():
            yield from _bars(block, sheet)
        case Part(title, inner):
            yield EMPTY
            yield fitting(shown(title, sheet.folder), sheet.width)
            yield from _all(inner, sheet)
            yield EMPTY
        case Indented(inner):
            yield from _indented(_all(inner, sheet.narrower(sheet.indent)), sheet.indent)


def _indented(found: Iterable[Pieces], by: int) -> Iterator[Pieces]:
    return ((Piece(" " * by), *line) if line else line for line in found)


def _label(label: str, sheet: Sheet) -> str:
    return f"{label:<{sheet.labels - 1}} " if sheet.labels else f"{label}: "


def _labelled(label: str, pieces: Pieces, sheet: Sheet) -> Iterator[Pieces]:
    """Words of several lines beside their label."""
    whole = shown(pieces, sheet.folder)
    stays = any(piece.file for piece in whole)
    found = [whole] if stays else list(wrapped(whole, max(sheet.width - len(label), 20)))
    for number, line in enumerate(found):
        yield (Piece(label if number == 0 else " " * len(label), Tone.DIM), *line)


def _source(source: SourceLine, sheet: Sheet) -> Iterator[Pieces]:
    words, marks = underlined(source.line, source.column, source.end_column, sheet.width - 2)
    yield (Piece(f"  {words}"),)
    if marks:
        yield (Piece(f"  {marks}", Tone.MARK),)


def _table(table: Table, sheet: Sheet) -> Iterator[Pieces]:
    cells = [
        [
            EMPTY if head.is_short_form and row.below else shown(cell, sheet.folder)
            for head, cell in zip(table.columns, row.cells, strict=True)
        ]
        for row in table.rows
    ]
    # A column in which no cell is left has no head.
    is_used = [any(column) for column in zip(*cells, strict=True)]
    heads = [
        (Piece(head.name, Tone.DIM),) if head.name and used else EMPTY
        for head, used in zip(table.columns, is_used, strict=True)
    ]
    widths = [max(map(width_of, column)) for column in zip(heads, *cells, strict=True)]
    numeric = [head.is_number for head in table.columns]
    yield _set(heads, widths, numeric)
    for row, found in zip(table.rows, cells, strict=True):
        whole = _set(found, widths, numeric)
        last = max((at for at, cell in enumerate(found) if cell), default=0)
        if width_of(whole) > sheet.width and width_of(_set(found[:last], widths, numeric)) <= sheet.width:
            yield _set(found[:last], widths, numeric)
            yield from _indented([found[last]], sheet.indent)
        else:
            yield whole
        yield from _indented(_all(row.below, sheet.narrower(sheet.indent)), sheet.indent)
        if row.below and table.is_airy:
            yield EMPTY


def _set(cells: Iterable[Pieces], widths: Iterable[int], numeric: Iterable[bool]) -> Pieces:
    """Cells side by side; nothing behind the last one that is not empty."""
    line: list[Piece] = []
    free = ""
    for pieces, width, is_number in zip(cells, widths, numeric, strict=False):
        left = " " * (width - width_of(pieces))
        if pieces:
            line += [Piece(free + left), *pieces] if is_number else [Piece(free), *pieces]
            free = ""
        free += _GAP if is_number and pieces else left + _GAP
    return tuple(piece for piece in line if piece.text)


def _records(records: Records, sheet: Sheet) -> Iterator[Pieces]:
    first = max((width_of(row[0]) for row in records.rows), default=0)
    labels = max((len(name) for name in records.columns[2:]), default=0) + 1
    for row in records.rows:
        lead = shown(row[0], sheet.folder)
        gap = Piece(" " * (first - width_of(lead) + 2))
        yield fitting((*lead, gap, *shown(row[1], sheet.folder)), sheet.width)
        inner = sheet.narrower(sheet.indent)
        for label, pieces in zip(records.columns[2:], row[2:], strict=True):
            if pieces:
                found = _labelled(f"{label:<{labels}}", pieces, inner)
                yield from _indented(found, sheet.indent)
        yield EMPTY


def _tree(tree: Tree, sheet: Sheet) -> Iterator[Pieces]:
    yield (Piece("  ".join(f"{name:>8}" for name in tree.columns), Tone.DIM),)
    for row in tree.rows:
        cells = [Piece(f"{cell:>8}{_GAP}") for cell in row.cells]
        indent = "  " * min(row.level, _TREE_DEEPEST)
        room = max(sheet.width - 10 * len(cells) - len(indent), _TREE_LEAST)
        words = shown(row.pieces, sheet.folder)
        if row.is_key:
            words = tuple(Piece(piece.text, Tone.STRONG, piece.file, piece.line) for piece in words)
        yield (*cells, Piece(indent), *fitting(words, room))


def _frames(frames: Frames, sheet: Sheet) -> Iterator[Pieces]:
    for row in frames.rows:
        if isinstance(row, SourceLine):
            yield from _indented(_source(row, sheet.narrower(2)), 2)
        else:
            yield shown(row, sheet.folder)


def _shares(shares: Shares, sheet: Sheet) -> Iterator[Pieces]:
    bar: list[Piece] = []
    left = _SHARES_WIDTH
    for part in shares.parts:
        cells = min(round(min(max(part.share, 0.0), 1.0) * _SHARES_WIDTH), left)
        left -= cells
        bar.append(Piece(part.marks[0 if sheet.unicode else 1] * cells, part.tone))
    lead = (Piece(_label(shares.label, sheet), Tone.DIM), *bar, Piece(" " * left + _GAP))
    indent = (Piece(" " * width_of(lead)),)
    found = wrapped(shown(shares.words, sheet.folder), sheet.width - width_of(lead))
    for number, line in enumerate(found):
        yield (*(indent if number else lead), *line)


def _bars(bars: Bars, sheet: Sheet) -> Iterator[Pieces]:
    label = _label(bars.label, sheet)
    values = _resampled(bars.values, max(sheet.width - len(label), _BARS_LEAST))
    marks = _BARS if sheet.unicode else _PLAIN_BARS
    drawn = "".join(marks[ceil(value * (len(marks) - 1))] for value in values)
    yield Piece(label, Tone.DIM), Piece(drawn, Tone.NUMBER)
    first, last = bars.caption
    if first:
        end = f"{last:>{max(len(drawn) - len(first), len(last) + 1)}}"
        yield (Piece(f"{'':{len(label)}}{first}{end}", Tone.DIM),)


def _resampled(values: tuple[float, ...], cells: int) -> list[float]:
    """At most so many values; of several that fall together the largest."""
    if len(values) <= cells:
        return list(values)
    edges = [number * len(values) // cells for number in range(cells + 1)]
    return [max(values[begin:end]) for begin, end in pairwise(edges)]
