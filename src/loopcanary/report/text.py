"""Documents for people at a terminal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from loopcanary.document.layout import Sheet, lines
from loopcanary.document.paint import link_of
from loopcanary.document.parts import Document, Pieces, Tone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console


_WIDTH_MAX = 120
_STYLES = {
    Tone.STRONG: "bold",
    Tone.DIM: "dim",
    Tone.NUMBER: "yellow",
    Tone.PLACE: "cyan",
    Tone.FOREIGN: "dim",
    Tone.MARK: "yellow",
    Tone.WARN: "red",
    Tone.ALARM: "bold red",
    Tone.GOOD: "green",
}


def show(document: Document, console: Console) -> None:
    """Prints lines as they are: a wrapped path could not be clicked."""
    for line in rich_lines(document, sheet_of(console)):
        console.print(line, soft_wrap=True, highlight=False)


def rich_lines(document: Document, sheet: Sheet) -> Iterator[Text]:
    """The document's lines with styles and links."""
    return map(_rich, lines(document, sheet))


def sheet_of(console: Console) -> Sheet:
    """What the console can show."""
    is_unicode = console.encoding.startswith("utf")
    return Sheet(width=min(console.width, _WIDTH_MAX), folder=_folder(), unicode=is_unicode)


def _rich(line: Pieces) -> Text:
    text = Text()
    for piece in line:
        url = link_of(piece.file, piece.line)
        text.append(piece.text, Style.parse(_STYLES.get(piece.tone, "")) + Style(link=url))
    return text


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - a text is wanted, and "" where the folder is gone
    except OSError:
        return ""
