"""A comparison as a document."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.document.makers import NOTHING, dim, facts, line, name, part, said, sentences, strong
from loopcanary.document.parts import Block, Document, Heading, Piece, Pieces, Records, Tone
from loopcanary.document.verdict import spot, spot_held
from loopcanary.model import Cause, StartKind
from loopcanary.report.diff.comparison import Change, Compared, Comparison
from loopcanary.report.diff.starts import ComparedStart
from loopcanary.report.diff.words import (
    count_words,
    import_words,
    load_note,
    side_words,
    stalled_words,
    start_doubt_words,
    start_times_words,
    unsure_words,
    verdict_words,
)
from loopcanary.report.figures.chance import LEVEL
from loopcanary.words.text import count_of, printable
from loopcanary.words.waiting import share_words

_TONES = {
    Change.NEW: Tone.ALARM,
    Change.WORSE: Tone.WARN,
    Change.BETTER: Tone.GOOD,
    Change.GONE: Tone.GOOD,
    Change.UNCHANGED: Tone.DIM,
}
_COLUMNS = ("", "what", "where", "stalled an hour", "stalls an hour", "note", "bug")
_START_COLUMNS = ("", "program", "took", "imports, their own time", "note")


def diff_document(comparison: Comparison, limit: int = 0) -> Document:
    """Both sides, then the bugs; at most `limit` of them, 0: all."""
    return Document(tuple(_blocks(comparison, limit)))


def _blocks(comparison: Comparison, limit: int) -> Iterator[Block]:
    yield Heading(said(strong(verdict_words(comparison) or "No stall on either side.")))
    yield facts(("A", side_words(comparison.before)), ("B", side_words(comparison.after)))
    if note := load_note(comparison):
        yield sentences(Piece(note, Tone.WARN))
    yield from _bugs(comparison, limit)
    if comparison.starts:
        yield from part("Starts", [Records(_START_COLUMNS, tuple(map(_start_record, comparison.starts)))])


def _bugs(comparison: Comparison, limit: int) -> Iterator[Block]:
    shown = comparison.groups[: limit or None]
    if not shown:
        return
    yield NOTHING
    yield Records(_COLUMNS, tuple(map(_record, shown)))
    if len(comparison.groups) > len(shown):
        left = count_of(len(comparison.groups) - len(shown), "more bug")
        yield line(dim(f"and {left} (--limit 0 shows all)"))
    yield sentences(dim(f"Ranges hold with {share_words(LEVEL)}; change is judged by stalled time per hour."))


def _start_record(one: ComparedStart) -> tuple[Pieces, ...]:
    kind = "start" if one.start is StartKind.UNKNOWN else f"{one.start.value} start"
    return (
        said(kind),
        said(strong(printable(one.program, 60))),
        said(start_times_words(one)),
        said("; ".join(map(import_words, one.imports))),
        said(Piece(start_doubt_words(one), Tone.WARN)),
    )


def _place(one: Compared) -> Pieces:
    if one.holder is not None:
        return spot_held(one.holder, one.cause)
    # Where the GIL was waited for is chance.
    return spot(one.culprit, one.cause) if one.culprit is not None and one.cause is not Cause.GIL else ()


def _record(one: Compared) -> tuple[Pieces, ...]:
    return (
        said(Piece(one.change.value, _TONES[one.change])),
        said(f"{one.cause.value}: ", strong(printable(one.title, 200))),
        _place(one),
        said(stalled_words(one)),
        said(count_words(one)),
        said(Piece(unsure_words(one), Tone.WARN)),
        said(name(one.fingerprint, 300)),
    )
