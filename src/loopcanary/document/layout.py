"""Blocks as lines for a terminal, as wide as it is.

A wrapped `path:line` cannot be clicked, so a line with a place in it is never wrapped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from math import ceil

from loopcanary.document import parts as doc
from loopcanary.document.parts import Pieces, Tone
from loopcanary.document.wrapping import fitting, shown, width_of, wrapped
from loopcanary.late_dataclass import dataclass
from loopcanary.words.text import file_url, underlined

_BARS = " ▁▂▃▄▅▆▇█"
_PLAIN_BARS = " .:-=+*#@"
_SHARES_WIDTH = 16
_BARS_LEAST = 10
_TREE_DEEPEST = 20
_TREE_LEAST = 16
_GAP = "  "
EMPTY: doc.Pieces = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The screen that the lines are set for."""

    width: int = 80
    folder: str = ""
    """Paths below it are shown relative to it."""
    unicode: bool = True
    indent: int = 3
    labels: int = 9
    """The columns of fact labels; 0: each label has its own length, and a colon."""

    def narrower(self, by: int) -> Sheet:
        """The sheet beside an indent."""
        return replace(self, width=max(self.width - by, 20))


def lines(document: doc.Document, sheet: Sheet) -> Iterator[doc.Pieces]:
    """The document's lines, with texts and paths as they are shown."""
    is_free = True
    for line in _all(document.blocks, sheet):
        if line or not is_free:
            yield line
        is_free = not line


def _all(blocks: Iterable[doc.Block], sheet: Sheet) -> Iterator[doc.Pieces]:
    for block in blocks:
        yield from _lines(block, sheet)


def _lines(block: doc.Block, sheet: Sheet) -> Iterator[doc.Pieces]:  # noqa: C901, PLR0912 - a case a block
    match block:
        case doc.Heading(pieces):
            yield fitting(shown(pieces, sheet.folder), sheet.width)
        case doc.Paragraph(pieces, wraps):
            whole = shown(pieces, sheet.folder)
            yield from wrapped(whole, sheet.width) if wraps else (whole,)
        case doc.Facts(rows):
            for row in rows:
                yield from _labelled(_label(row.label, sheet), row.pieces, sheet)
        case doc.Items(rows):
            for pieces in rows:
                yield from _labelled("- ", pieces, sheet)
        case doc.SourceLine():
            yield from _source(block, sheet)
        case doc.Table():
            yield from _table(block, sheet)
        case doc.Records():
            yield from _records(block, sheet)
        case doc.Tree():
            yield from _tree(block, sheet)
        case doc.Frames():
            yield from _frames(block, sheet)
        case doc.Shares():
            yield from _shares(block, sheet)
        case doc.Bars():
            yield from _bars(block, sheet)
        case doc.Part(title, inner):
            yield EMPTY
            yield fitting(shown(title, sheet.folder), sheet.width)
            yield from _all(inner, sheet)
            yield EMPTY
        case doc.Indented(inner):
            yield from _indented(_all(inner, sheet.narrower(sheet.indent)), sheet.indent)


def _indented(found: Iterable[doc.Pieces], by: int) -> Iterator[doc.Pieces]:
    return ((doc.Piece(" " * by), *line) if line else line for line in found)


def _label(label: str, sheet: Sheet) -> str:
    return f"{label:<{sheet.labels - 1}} " if sheet.labels else f"{label}: "


def _labelled(label: str, pieces: doc.Pieces, sheet: Sheet) -> Iterator[doc.Pieces]:
    """Words of several lines beside their label."""
    whole = shown(pieces, sheet.folder)
    stays = any(piece.file for piece in whole)
    found = [whole] if stays else list(wrapped(whole, max(sheet.width - len(label), 20)))
    for number, line in enumerate(found):
        yield (doc.Piece(label if number == 0 else " " * len(label), doc.Tone.DIM), *line)


def _source(source: doc.SourceLine, sheet: Sheet) -> Iterator[doc.Pieces]:
    words, marks = underlined(source.line, source.column, source.end_column, sheet.width - 2)
    yield (doc.Piece(f"  {words}"),)
    if marks:
        yield (doc.Piece(f"  {marks}", doc.Tone.MARK),)


def _table(table: doc.Table, sheet: Sheet) -> Iterator[doc.Pieces]:
    cells = [
        [
            EMPTY if head.is_short_form and row.below else shown(cell, sheet.folder)
            for head, cell in zip(table.columns, row.cells, strict=True)
        ]
        for row in table.rows
    ]
    # An empty column has no head.
    is_used = [any(column) for column in zip(*cells, strict=True)]
    heads = [
        (doc.Piece(head.name, doc.Tone.DIM),) if head.name and used else EMPTY
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


def _set(cells: Iterable[doc.Pieces], widths: Iterable[int], numeric: Iterable[bool]) -> doc.Pieces:
    """Cells side by side, up to the last that is not empty."""
    line: list[doc.Piece] = []
    free = ""
    for pieces, width, is_number in zip(cells, widths, numeric, strict=False):
        left = " " * (width - width_of(pieces))
        if pieces:
            line += [doc.Piece(free + left), *pieces] if is_number else [doc.Piece(free), *pieces]
            free = ""
        free += _GAP if is_number and pieces else left + _GAP
    return tuple(piece for piece in line if piece.text)


def _records(records: doc.Records, sheet: Sheet) -> Iterator[doc.Pieces]:
    first = max((width_of(row[0]) for row in records.rows), default=0)
    labels = max((len(name) for name in records.columns[2:]), default=0) + 1
    for row in records.rows:
        lead = shown(row[0], sheet.folder)
        gap = doc.Piece(" " * (first - width_of(lead) + 2))
        yield fitting((*lead, gap, *shown(row[1], sheet.folder)), sheet.width)
        inner = sheet.narrower(sheet.indent)
        for label, pieces in zip(records.columns[2:], row[2:], strict=True):
            if pieces:
                found = _labelled(f"{label:<{labels}}", pieces, inner)
                yield from _indented(found, sheet.indent)
        yield EMPTY


def _tree(tree: doc.Tree, sheet: Sheet) -> Iterator[doc.Pieces]:
    yield (doc.Piece("  ".join(f"{name:>8}" for name in tree.columns), doc.Tone.DIM),)
    for row in tree.rows:
        cells = [doc.Piece(f"{cell:>8}{_GAP}") for cell in row.cells]
        indent = "  " * min(row.level, _TREE_DEEPEST)
        room = max(sheet.width - 10 * len(cells) - len(indent), _TREE_LEAST)
        words = shown(row.pieces, sheet.folder)
        if row.is_key:
            words = tuple(doc.Piece(piece.text, doc.Tone.STRONG, piece.file, piece.line) for piece in words)
        yield (*cells, doc.Piece(indent), *fitting(words, room))


def _frames(frames: doc.Frames, sheet: Sheet) -> Iterator[doc.Pieces]:
    for row in frames.rows:
        if isinstance(row, doc.SourceLine):
            yield from _indented(_source(row, sheet.narrower(2)), 2)
        else:
            yield shown(row, sheet.folder)


def _shares(shares: doc.Shares, sheet: Sheet) -> Iterator[doc.Pieces]:
    bar: list[doc.Piece] = []
    left = _SHARES_WIDTH
    for part in shares.parts:
        cells = min(round(min(max(part.share, 0.0), 1.0) * _SHARES_WIDTH), left)
        left -= cells
        bar.append(doc.Piece(part.marks[0 if sheet.unicode else 1] * cells, part.tone))
    lead = (doc.Piece(_label(shares.label, sheet), doc.Tone.DIM), *bar, doc.Piece(" " * left + _GAP))
    indent = (doc.Piece(" " * width_of(lead)),)
    found = wrapped(shown(shares.words, sheet.folder), sheet.width - width_of(lead))
    for number, line in enumerate(found):
        yield (*(indent if number else lead), *line)


def _bars(bars: doc.Bars, sheet: Sheet) -> Iterator[doc.Pieces]:
    label = _label(bars.label, sheet)
    values = _resampled(bars.values, max(sheet.width - len(label), _BARS_LEAST))
    marks = _BARS if sheet.unicode else _PLAIN_BARS
    drawn = "".join(marks[ceil(value * (len(marks) - 1))] for value in values)
    yield doc.Piece(label, doc.Tone.DIM), doc.Piece(drawn, doc.Tone.NUMBER)
    first, last = bars.caption
    if first:
        end = f"{last:>{max(len(drawn) - len(first), len(last) + 1)}}"
        yield (doc.Piece(f"{'':{len(label)}}{first}{end}", doc.Tone.DIM),)


def _resampled(values: tuple[float, ...], cells: int) -> list[float]:
    """At most so many values, each the largest of those that fall together."""
    if len(values) <= cells:
        return list(values)
    edges = [number * len(values) // cells for number in range(cells + 1)]
    return [max(values[begin:end]) for begin, end in pairwise(edges)]


LINKED_MAX = 200
"""Longer paths get no link."""
_CODES = {
    Tone.STRONG: "1",
    Tone.DIM: "2",
    Tone.NUMBER: "33",
    Tone.PLACE: "36",
    Tone.FOREIGN: "2",
    Tone.MARK: "33",
    Tone.WARN: "31",
    Tone.ALARM: "1;31",
    Tone.GOOD: "32",
}


def painted(lines: Iterable[Pieces], *, colour: bool = False, links: bool = False) -> str:
    """The lines as one text, each with its line end."""
    return "".join(f"{painted_line(line, colour=colour, links=links)}\n" for line in lines)


def painted_line(line: Pieces, *, colour: bool = False, links: bool = False) -> str:
    parts: list[str] = []
    for piece in line:
        code = _CODES.get(piece.tone) if colour else None
        text = f"\x1b[{code}m{piece.text}\x1b[0m" if code and piece.text else piece.text
        url = link_of(piece.file, piece.line) if links else None
        parts.append(text if url is None else f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\")
    return "".join(parts)


def link_of(file: str, line: int) -> str | None:
    """The target of a click on a place; None: it is not a file, or its path is too long."""
    return file_url(file, line) if file and len(file) <= LINKED_MAX else None
