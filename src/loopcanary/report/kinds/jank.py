"""Frames that were drawn late."""

from __future__ import annotations

from loopcanary.document.makers import dim, facts, name, number, part, said
from loopcanary.document.parts import Block, Facts, Head, Pieces, Table, TableRow
from loopcanary.model import Jank, LateFrame
from loopcanary.model.units import format_duration, format_number
from loopcanary.report.times import exactly
from loopcanary.words.frames import fps_words, frozen_words, level_words
from loopcanary.words.text import count_of

_HEADS = (Head("frame", is_number=True), Head("dropped", is_number=True), Head("began"), Head("stall in it"))


def figures(jank: Jank) -> Facts:
    found = jank.figures
    frames = f"{fps_words(found)}, {count_of(found.frames, 'frame')}"
    return facts(
        ("frames", f"{frames} in {format_duration(found.frame_ns)}, {found.dropped:,} dropped"),
        ("levels", level_words(found)),
        ("late", f"{format_number(found.hitch_ms_per_s)} ms in each second"),
        ("frozen", frozen_words(found)),
    )


def parts(jank: Jank) -> tuple[Block, ...]:
    """The worst frames, with the stalls in them."""
    rows = tuple(map(_row, jank.worst))
    return part("worst frames", [Table(_HEADS, rows)] if rows else [])


def _row(frame: LateFrame) -> TableRow:
    return TableRow(
        (
            said(number(format_duration(frame.duration_ns))),
            said(f"{frame.dropped:,}"),
            said(exactly(frame.began_wall_ns)),
            _stalls(frame.stalls),
        )
    )


def _stalls(stalls: tuple[str, ...]) -> Pieces:
    if not stalls:
        return said(dim("no single piece of work was as long as the threshold"))
    return said(*(part for stall in stalls for part in (name(stall), " ")))[:-1]
