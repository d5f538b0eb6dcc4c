"""Short ways to make pieces and blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import compress

from loopcanary.document.parts import Block, Fact, Facts, Paragraph, Part, Piece, Pieces, Table, Tone
from loopcanary.words.text import printable

NAME_MAX = 60
NOTHING = Paragraph(())
"""An empty line in terminals."""

Said = str | Piece | Pieces
"""Words, a piece with a tone, or several pieces."""


def said(*parts: Said) -> Pieces:
    """The pieces of a line; empty ones are left out."""
    found: list[Piece] = []
    for part in parts:
        if isinstance(part, str):
            found.append(Piece(part))
        elif isinstance(part, Piece):
            found.append(part)
        else:
            found += part
    return tuple(piece for piece in found if piece.text or piece.file)


def line(*parts: Said) -> Paragraph:
    """One line that stays whole."""
    return Paragraph(said(*parts))


def sentences(*parts: Said) -> Paragraph:
    """Words that may be wrapped."""
    return Paragraph(said(*parts), wraps=True)


def strong(text: str) -> Piece:
    """The subject of a line."""
    return Piece(text, Tone.STRONG)


def dim(text: str) -> Piece:
    """A part that readers may skip."""
    return Piece(text, Tone.DIM)


def number(text: str) -> Piece:
    """The figure that a line is about."""
    return Piece(text, Tone.NUMBER)


def name(text: str | None, limit: int = NAME_MAX) -> Piece:
    """A name or an id of the watched program, cut in its middle."""
    return Piece(printable(text or "", limit), Tone.NAME)


def prose(text: str, limit: int = 1_000) -> Piece:
    """Sentences with code between backquotes."""
    return Piece(printable(text, limit), Tone.PROSE)


def place_of(file: str, line: int, *, is_own: bool = True, shown: str = "") -> Piece:
    """`path:line`; `shown`: a shorter name of the file."""
    return Piece(shown, Tone.PLACE if is_own else Tone.FOREIGN, file, line)


def facts(*rows: tuple[str, Said | None]) -> Facts:
    """Labelled facts; those without words are left out."""
    return Facts(tuple(Fact(label, pieces) for label, words in rows if words and (pieces := said(words))))


def part(title: Said, blocks: Iterable[Block], *, is_aside: bool = False) -> tuple[Part, ...]:
    """Blocks under a title; nothing where there are no blocks."""
    listed = tuple(blocks)
    heading = Piece(title, Tone.STRONG) if isinstance(title, str) else title
    return (Part(said(heading), listed, is_aside),) if listed else ()


def filled(table: Table) -> Table:
    """The table without the columns in which every cell is empty."""
    used = [any(column) for column in zip(*(row.cells for row in table.rows), strict=True)]
    rows = [replace(row, cells=tuple(compress(row.cells, used))) for row in table.rows]
    return replace(table, columns=tuple(compress(table.columns, used)), rows=tuple(rows))
