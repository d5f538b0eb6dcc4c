"""Stacks as frames of a document, folded to the program's own code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopcanary.document.makers import dim, name, part, place_of, said
from loopcanary.document.parts import Block, Frames, Indented, Piece, Pieces, Tone
from loopcanary.model import StackFrame, WeightedStack
from loopcanary.model.loop_frames import work_of
from loopcanary.model.units import format_duration
from loopcanary.report.folding import Fold, folded
from loopcanary.words.text import count_of, library_path, printable

_ROWS_MAX = 100


def stack_parts(stacks: Sequence[WeightedStack], most: int) -> Iterator[Block]:
    """A part for each of the `most` heaviest stacks."""
    for stack in sorted(stacks, key=lambda stack: -stack.weight_ns)[:most]:
        title = f"stack that held {format_duration(stack.weight_ns)}" if stack.weight_ns else "stack"
        yield from part(title, [Indented((stack_frames(stack),))], is_aside=True)


def stack_frames(stack: WeightedStack) -> Frames:
    """The work of one stack, innermost frame first."""
    work = work_of(stack.frames)
    outer = len(stack.frames) - len(work)
    notes = (
        f"{count_of(outer, 'outer frame')}: the loop, and what runs it" if outer else "",
        "outer frames were not read" if stack.truncated else "",
    )
    return frames_of(work, "; ".join(filter(None, notes)))


def frames_of(frames: Sequence[StackFrame], note: str = "") -> Frames:
    """Own code is highlighted. `note`: what is said below."""
    rows = folded(frames)
    found = [_row(row) for row in rows[:_ROWS_MAX]]
    if len(rows) > _ROWS_MAX:
        found.append(said(dim(f"and {count_of(len(rows) - _ROWS_MAX, 'more line')}")))
    return Frames((*found, *([said(dim(note))] if note else [])))


def _row(row: StackFrame | Fold) -> Pieces:
    if isinstance(row, Fold):
        words = f"{count_of(row.count, 'frame')} in {printable(', '.join(row.packages), 50)}"
        return said(dim(words))
    if row.in_app:
        return said(place_of(row.file, row.line), " in ", name(row.qualname))
    place = place_of(row.file, row.line, is_own=False, shown=library_path(row.file))
    return said(place, Piece(f" in {name(row.qualname).text}", Tone.DIM))
