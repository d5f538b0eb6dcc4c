"""The blocks of a document and the pieces of their lines.

Text of the watched program needs no care: every printer makes it printable and escapes it.
"""

from __future__ import annotations

from enum import Enum

from loopcanary.late_dataclass import dataclass


class Tone(Enum):
    """The meaning of a piece, by which printers choose colour and mark-up."""

    PLAIN = "plain"
    STRONG = "strong"
    DIM = "dim"
    NUMBER = "number"
    """The figure that a line is about."""
    NAME = "name"
    """A name or an id of the watched program."""
    PLACE = "place"
    """A line of the program's own code; the piece has `file` and `line`."""
    FOREIGN = "foreign"
    """A line of other code."""
    PROSE = "prose"
    """Sentences with code between backquotes."""
    MARK = "mark"
    """The marks below a call."""
    WARN = "warn"
    ALARM = "alarm"
    GOOD = "good"


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words of a line. Of a place, `text` is a shorter name of the file, or empty."""

    text: str
    tone: Tone = Tone.PLAIN
    file: str = ""
    line: int = 0


Pieces = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """The subject of the document, or of the part that it begins. Its last piece is cut if it is too long."""

    pieces: Pieces


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One line that stays whole, as a wrapped place cannot be clicked; `wraps`: one that may be broken."""

    pieces: Pieces
    wraps: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and what is said under it. With a place in it the line stays whole."""

    label: str
    pieces: Pieces


@dataclass(frozen=True, slots=True)
class Facts:
    """Labelled facts, one below the other."""

    rows: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list of sentences."""

    rows: tuple[Pieces, ...]


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of source; columns of its call are 1-based characters, 0 unknown."""

    line: str
    column: int = 0
    end_column: int = 0


@dataclass(frozen=True, slots=True)
class Head:
    name: str
    is_number: bool = False
    is_short_form: bool = False
    """Terminals leave its cell out if blocks below the row say it in full."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row. What is below it comes, in Markdown and HTML, after the table under `title`."""

    cells: tuple[Pieces, ...]
    title: Pieces = ()
    below: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head. `is_airy`: terminals leave a line free after a row with blocks below."""

    columns: tuple[Head, ...]
    rows: tuple[TableRow, ...]
    is_airy: bool = False


@dataclass(frozen=True, slots=True)
class Records:
    """A table with long cells: terminals show the first two cells as a line, the others as facts below it."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Pieces, ...], ...]


@dataclass(frozen=True, slots=True)
class TreeRow:
    cells: tuple[str, ...]
    level: int
    pieces: Pieces
    is_key: bool = False


@dataclass(frozen=True, slots=True)
class Tree:
    """Figures and names, one inside the other."""

    columns: tuple[str, ...]
    rows: tuple[TreeRow, ...]


@dataclass(frozen=True, slots=True)
class Frames:
    """A stack, innermost frame first. A source belongs to the frame before it."""

    rows: tuple[Pieces | SourceLine, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a whole, from 0 to 1."""

    name: str
    share: float
    tone: Tone
    marks: str
    """One character for terminals with Unicode, one for those without."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Where a whole went: a bar in terminals, with its words."""

    label: str
    parts: tuple[Share, ...]
    words: Pieces


@dataclass(frozen=True, slots=True)
class Bars:
    """A course over time, each value from 0 to 1; drawn in terminals only. `caption`: begin and end."""

    label: str
    values: tuple[float, ...]
    caption: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Part:
    """Blocks under a title. `is_aside`: folded where a printer can fold."""

    title: Pieces
    blocks: tuple[Block, ...]
    is_aside: bool = False


@dataclass(frozen=True, slots=True)
class Indented:
    """Blocks that belong to what is said before them."""

    blocks: tuple[Block, ...]


Block = (
    Heading
    | Paragraph
    | Facts
    | Items
    | SourceLine
    | Table
    | Records
    | Tree
    | Frames
    | Shares
    | Bars
    | Part
    | Indented
)


@dataclass(frozen=True, slots=True)
class Document:
    blocks: tuple[Block, ...]
