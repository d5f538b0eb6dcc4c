"""Documents for people at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from loopcanary.document.layout import Sheet, lines, link_of
from loopcanary.document.parts import Document, Pieces, Tone
from loopcanary.facts import working_folder

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
    is_unicode = console.encoding.startswith("utf")
    return Sheet(width=min(console.width, _WIDTH_MAX), folder=working_folder(), unicode=is_unicode)


def _rich(line: Pieces) -> Text:
    text = Text()
    for piece in line:
        url = link_of(piece.file, piece.line)
        text.append(piece.text, Style.parse(_STYLES.get(piece.tone, "")) + Style(link=url))
    return text
