"""Lines of pieces that fit: measured, cut, wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from loopcanary.document.parts import Piece, Pieces
from loopcanary.words.text import display_width, place, printable

PATH_MAX = 200
_LEAST = 8
# A number is not parted from its unit.
_UNIT = re.compile(r"(?<=\d) (?=(?:%|(?:[num]?s|m|h|[KMGT]?i?B)\b))")
_NO_BREAK = "\N{NO-BREAK SPACE}"


def shown(pieces: Pieces, folder: str) -> Pieces:
    """The pieces with their shown text; paths are relative to the folder."""
    return tuple(replace(piece, text=text_of(piece, folder)) for piece in pieces)


def text_of(piece: Piece, folder: str) -> str:
    """The shown text of a piece: printable, in one line."""
    if piece.file:
        whole = place(piece.text or piece.file, piece.line, folder)
        # The end of a path says more than its front.
        return whole if len(whole) <= PATH_MAX else f"...{whole[-PATH_MAX:]}"
    return printable(piece.text)


def plain(pieces: Pieces, folder: str = "") -> str:
    """The words alone: for a notification, a log line, a title."""
    return "".join(text_of(piece, folder) for piece in pieces)


def width_of(pieces: Pieces) -> int:
    """The width in columns of a terminal."""
    return sum(display_width(piece.text) for piece in pieces)


def fitting(pieces: Pieces, width: int) -> Pieces:
    """The pieces, the last one cut if they are wider."""
    too_much = width_of(pieces) - width
    if too_much <= 0 or not pieces or pieces[-1].file:
        return pieces
    last = pieces[-1]
    return *pieces[:-1], replace(last, text=printable(last.text, max(len(last.text) - too_much, _LEAST)))


def wrapped(pieces: Pieces, width: int) -> Iterator[Pieces]:
    """Lines of at most that width, unless a single word is wider."""
    line: list[Piece] = []
    used = 0
    for word in _words(pieces):
        size = width_of(word)
        if line and used + 1 + size > width:
            yield _joined(line)
            line, used = [], 0
        if line:
            line.append(Piece(" "))
            used += 1
        line += word
        used += size
    if line:
        yield _joined(line)


def _words(pieces: Pieces) -> list[Pieces]:
    words: list[list[Piece]] = [[]]
    for piece in pieces:
        for number, text in enumerate(_UNIT.sub(_NO_BREAK, piece.text).split(" ")):
            if number:
                words.append([])
            if text:
                words[-1].append(replace(piece, text=text.replace(_NO_BREAK, " ")))
    return [tuple(word) for word in words]


def _joined(line: list[Piece]) -> Pieces:
    """The line, with neighbours of one tone as one piece."""
    found: list[Piece] = []
    for piece in line:
        last = found[-1] if found else None
        if (
            last is not None
            and not piece.file
            and not last.file
            and (piece.tone is last.tone or piece.text == " ")
        ):
            found[-1] = replace(last, text=last.text + piece.text)
        else:
            found.append(piece)
    return tuple(found)
