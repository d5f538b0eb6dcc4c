"""Documents as HTML, for pages without a template of their own. Everything is escaped.

Classes are the names of tones; places have their full path as title. The style is the page's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from loopcanary.document import parts as doc
from loopcanary.document.wrapping import text_of
from loopcanary.words.text import printable, underlined

_SOURCE_WIDTH = 200
_CODE = frozenset({doc.Tone.NAME, doc.Tone.PLACE, doc.Tone.FOREIGN})


def render(document: doc.Document, folder: str = "", *, level: int = 2) -> str:
    """The document's elements; headings begin at this level, paths are relative to the folder."""
    return "\n".join(_blocks(document.blocks, folder, level))


def _blocks(blocks: Iterable[doc.Block], folder: str, level: int) -> Iterator[str]:
    for block in blocks:
        yield from _block(block, folder, level)


def _block(block: doc.Block, folder: str, level: int) -> Iterator[str]:  # noqa: C901, PLR0912 - a case a block
    match block:
        case doc.Heading(pieces):
            yield f"<h{min(level, 6)}>{inline(pieces, folder)}</h{min(level, 6)}>"
        case doc.Paragraph(pieces):
            yield f"<p>{inline(pieces, folder)}</p>"
        case doc.Facts(rows):
            yield from _facts(((row.label, row.pieces) for row in rows), folder)
        case doc.Items(rows):
            items = "".join(f"<li>{inline(pieces, folder)}</li>" for pieces in rows)
            yield f"<ul>{items}</ul>"
        case doc.SourceLine():
            yield f"<pre>{_source(block)}</pre>"
        case doc.Table(columns, rows):
            heads = [(head.name, head.is_number) for head in columns]
            yield _grid(heads, (row.cells for row in rows), folder)
            for row in rows:
                yield from (
                    _block(doc.Part(row.title or row.cells[0], row.below), folder, level) if row.below else ()
                )
        case doc.Records(names, cells):
            yield _grid([(name, False) for name in names], cells, folder)
        case doc.Tree() | doc.Frames():
            yield f"<pre>{_rows(block, folder)}</pre>"
        case doc.Shares(label, _, words):
            yield from _facts([(label, words)], folder)
        case doc.Part(title, inner, is_aside):
            tag = "details" if is_aside else "section"
            head = "summary" if is_aside else f"h{min(level + 1, 6)}"
            yield f"<{tag}><{head}>{inline(title, folder)}</{head}>"
            yield from _blocks(inner, folder, level + 1)
            yield f"</{tag}>"
        case doc.Indented(inner):
            yield from _blocks(inner, folder, level)
        case doc.Bars():
            pass  # a picture of figures that are said as well


def _facts(rows: Iterable[tuple[str, doc.Pieces]], folder: str) -> Iterator[str]:
    pairs = "".join(f"<dt>{_safe(label)}</dt><dd>{inline(pieces, folder)}</dd>" for label, pieces in rows)
    yield f'<dl class="facts">{pairs}</dl>'


def _grid(heads: list[tuple[str, bool]], rows: Iterable[Iterable[doc.Pieces]], folder: str) -> str:
    kinds = [' class="number"' if is_number else "" for _, is_number in heads]
    head = "".join(f"<th{kind}>{_safe(name)}</th>" for (name, _), kind in zip(heads, kinds, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{inline(cell, folder)}</td>" for cell, kind in zip(cells, kinds, strict=True))
        + "</tr>"
        for cells in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _rows(block: doc.Tree | doc.Frames, folder: str) -> str:
    if isinstance(block, doc.Frames):
        return "\n".join(
            _source(row) if isinstance(row, doc.SourceLine) else inline(row, folder) for row in block.rows
        )
    head = "  ".join(f"{name:>8}" for name in block.columns)
    rows = [
        f"{_safe('  '.join(f'{cell:>8}' for cell in row.cells))}{'  ' * (row.level + 1)}"
        + inline(row.pieces, folder)
        for row in block.rows
    ]
    return "\n".join([_safe(head), *rows])


def _source(source: doc.SourceLine) -> str:
    words, marks = underlined(source.line, source.column, source.end_column, _SOURCE_WIDTH)
    return _safe(words) + (f'\n<span class="mark">{_safe(marks)}</span>' if marks else "")


def inline(pieces: doc.Pieces, folder: str = "") -> str:
    return "".join(_inline(piece, folder) for piece in pieces)


def _inline(piece: doc.Piece, folder: str) -> str:
    text = _safe(text_of(piece, folder))
    if piece.tone is doc.Tone.PROSE:
        parts = text.split("`")
        return "".join(
            f"<code>{part}</code>" if number % 2 and number < len(parts) - 1 else part
            for number, part in enumerate(parts)
        )
    if piece.tone is doc.Tone.PLAIN:
        return text
    tag = "code" if piece.tone in _CODE else "strong" if piece.tone is doc.Tone.STRONG else "span"
    title = f' title="{_safe(printable(piece.file))}"' if piece.file else ""
    return f'<{tag} class="{piece.tone.value}"{title}>{text}</{tag}>'


def _safe(text: str) -> str:
    return escape(printable(text))
