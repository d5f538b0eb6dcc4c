"""Stacks as frames of a document, folded to the program's own code: each run of other frames is one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import PurePath

from loopcanary.document.makers import dim, name, part, place_of, said
from loopcanary.document.parts import Block, Frames, Indented, Piece, Pieces, Tone
from loopcanary.late_dataclass import dataclass
from loopcanary.model import StackFrame, WeightedStack
from loopcanary.model.loop_frames import work_of
from loopcanary.model.units import format_duration
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Frames that are left out, and the packages they belong to, in order of appearance."""

    count: int
    packages: tuple[str, ...]


def folded(frames: Sequence[StackFrame]) -> list[StackFrame | Fold]:
    """Own frames as they are, others folded; the innermost frame always stays, it says what was called."""
    rows: list[StackFrame | Fold] = []
    rest = frames
    if frames and not frames[0].in_app:
        rows.append(frames[0])
        rest = frames[1:]
    for in_app, group in groupby(rest, key=lambda frame: frame.in_app):
        run = list(group)
        rows += run if in_app else [_fold(run)]
    return rows


def _fold(run: Sequence[StackFrame]) -> StackFrame | Fold:
    if len(run) == 1:
        return run[0]
    return Fold(count=len(run), packages=tuple(dict.fromkeys(package_of(frame.file) for frame in run)))


def package_of(file: str) -> str:
    """The top-level package or module that a file belongs to, by its path."""
    inside = PurePath(library_path(file))
    return (
        inside.parts[0].removesuffix(".py") if inside.parts and str(inside) != file else inside.stem or file
    )
