"""Lines as text: plain, or coloured and linked with the escape sequences of terminals."""

from __future__ import annotations

from collections.abc import Iterable

from loopcanary.document.parts import Pieces, Tone
from loopcanary.words.text import file_url

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
    """A line that `layout` has set."""
    parts: list[str] = []
    for piece in line:
        code = _CODES.get(piece.tone) if colour else None
        text = f"\x1b[{code}m{piece.text}\x1b[0m" if code and piece.text else piece.text
        url = link_of(piece.file, piece.line) if links else None
        parts.append(text if url is None else f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\")
    return "".join(parts)


def link_of(file: str, line: int) -> str | None:
    """Where a click on a place leads; None for what is no file, or has too long a path."""
    return file_url(file, line) if file and len(file) <= LINKED_MAX else None
