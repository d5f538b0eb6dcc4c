"""Documents as Markdown, for an issue tracker.

Names, places and sources of the watched program are in code spans and blocks, where they are neither mark-up
nor mentions of people; other text has all that Markdown and HTML act on escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from loopcanary.document import parts as doc
from loopcanary.document.wrapping import plain, text_of
from loopcanary.words.text import printable, underlined

_ACTIVE = re.compile(r"[\\`*_\[\]#|~$]|:(?=//)|(?<=www)\.")
_CODE = frozenset({doc.Tone.NAME, doc.Tone.PLACE, doc.Tone.FOREIGN})
_STRONG = frozenset({doc.Tone.STRONG, doc.Tone.ALARM})
_SOURCE_WIDTH = 120
_TOP, _DEEPEST = 2, 6


def render(document: doc.Document, folder: str = "") -> str:
    """The document, with paths relative to the folder."""
    lines: list[str] = []
    for line in _blocks(document.blocks, folder, _TOP):
        if line or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines).rstrip("\n") + "\n"


def _blocks(blocks: Iterable[doc.Block], folder: str, level: int) -> Iterator[str]:
    for block in blocks:
        yield from _block(block, folder, level)


def _block(block: doc.Block, folder: str, level: int) -> Iterator[str]:  # noqa: C901, PLR0912 - a case a block
    match block:
        case doc.Heading(pieces):
            yield f"{'#' * min(level, _DEEPEST)} {escaped(plain(pieces, folder))}"
            yield ""
        case doc.Paragraph(pieces):
            if pieces:
                yield inline(pieces, folder)
                yield ""
        case doc.Facts(rows):
            yield from (f"- **{_capital(row.label)}**: {inline(row.pieces, folder)}" for row in rows)
            yield ""
        case doc.Items(rows):
            yield from (f"- {inline(pieces, folder)}" for pieces in rows)
            yield ""
        case doc.SourceLine():
            yield from code_block(_source(block), "python")
            yield ""
        case doc.Table():
            yield from _table(block, folder, level)
        case doc.Records(columns, cells):
            yield from _grid(columns, [False] * len(columns), cells, folder)
        case doc.Tree():
            yield from code_block(
                [f"{' '.join(f'{name:>8}' for name in block.columns)}", *_tree(block, folder)]
            )
            yield ""
        case doc.Frames():
            yield from code_block(list(_frames(block, folder)))
            yield ""
        case doc.Shares(label, _, words):
            yield f"- **{_capital(label)}**: {inline(words, folder)}"
            yield ""
        case doc.Part():
            yield from _part(block, folder, level)
        case doc.Indented(inner):
            yield from _blocks(inner, folder, level)
        case doc.Bars():
            pass  # a picture of figures that are said as well


def _part(part: doc.Part, folder: str, level: int) -> Iterator[str]:
    title = escaped(_capital(plain(part.title, folder)))
    if part.is_aside:
        yield f"<details><summary>{title}</summary>"
        yield ""
        yield from _blocks(part.blocks, folder, level + 1)
        yield "</details>"
        yield ""
        return
    yield f"{'#' * min(level + 1, _DEEPEST)} {title}"
    yield ""
    yield from _blocks(part.blocks, folder, level + 1)


def _table(table: doc.Table, folder: str, level: int) -> Iterator[str]:
    names = [head.name for head in table.columns]
    yield from _grid(
        names, [head.is_number for head in table.columns], (row.cells for row in table.rows), folder
    )
    listed = False
    for row in table.rows:
        if row.title:
            yield from _block(doc.Part(row.title, row.below), folder, level)
        elif row.below:
            listed = True
            yield f"- {_row_words(row, folder)}"
    if listed:
        yield ""


def _grid(
    names: Iterable[str], numeric: Iterable[bool], rows: Iterable[Iterable[doc.Pieces]], folder: str
) -> Iterator[str]:
    yield f"| {' | '.join(names)} |"
    yield "|" + "".join("---:|" if is_number else "---|" for is_number in numeric)
    for cells in rows:
        # A bar ends a cell even inside a code span, unless escaped.
        words = [re.sub(r"(?<!\\)\|", r"\\|", inline(pieces, folder)) for pieces in cells]
        yield f"| {' | '.join(words)} |"
    yield ""


def _row_words(row: doc.TableRow, folder: str) -> str:
    """A row's first cell, and what comes below it, in one line."""
    below = [
        inline(block.pieces, folder)
        for block in row.below
        if isinstance(block, doc.Paragraph) and block.pieces
    ]
    return f"{inline(row.cells[0], folder)}: {'; '.join(below)}"


def _tree(tree: doc.Tree, folder: str) -> Iterator[str]:
    for row in tree.rows:
        figures = " ".join(f"{cell:>8}" for cell in row.cells)
        yield f"{figures}  {'  ' * min(row.level, 20)}{plain(row.pieces, folder)}"


def _frames(frames: doc.Frames, folder: str) -> Iterator[str]:
    """Marks the program's own frames."""
    for row in frames.rows:
        if isinstance(row, doc.SourceLine):
            yield from (f"    {line}" for line in _source(row))
        else:
            is_own = any(piece.tone is doc.Tone.PLACE for piece in row)
            yield f"{'>' if is_own else ' '} {plain(row, folder)}"


def _source(source: doc.SourceLine) -> list[str]:
    words, marks = underlined(source.line, source.column, source.end_column, _SOURCE_WIDTH)
    return [words, marks] if marks else [words]


def inline(pieces: doc.Pieces, folder: str = "") -> str:
    return "".join(_inline(piece, folder) for piece in pieces).strip()


def _inline(piece: doc.Piece, folder: str) -> str:
    text = text_of(piece, folder)
    if piece.tone in _CODE:
        return code(text)
    if piece.tone is doc.Tone.PROSE:
        parts = text.split("`")
        # Without its end a backquote begins no code.
        return "".join(
            code(part) if number % 2 and number < len(parts) - 1 else escaped(part)
            for number, part in enumerate(parts)
        )
    if piece.tone in _STRONG and (bare := text.strip()):
        return escaped(text).replace(escaped(bare), f"**{escaped(bare)}**", 1)
    return escaped(text)


def escaped(text: str) -> str:
    text = printable(text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;")
    # Entities made above hold `#` and `;`, which must stay.
    parts = re.split(r"(&(?:amp|lt|gt|#64);)", text)
    return "".join(part if part.startswith("&") else _ACTIVE.sub(r"\\\g<0>", part) for part in parts)


def code(text: str) -> str:
    """Text in a code span; its fence is longer than any run of backticks inside."""
    text = printable(text)
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}" if text else ""


def code_block(lines: list[str], language: str = "") -> list[str]:
    """Printable lines in a fenced block."""
    fence = "`" * max(3, max((_longest_run(line) for line in lines), default=0) + 1)
    return [fence + language, *lines, fence]


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
