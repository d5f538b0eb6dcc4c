"""Frames in a document and in JSON: a line each, and one line for those that repeat each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopcanary.document.makers import dim, name, place_of, said
from loopcanary.document.parts import Piece, Pieces, SourceLine, Tone
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Frame
from loopcanary.model.outside import ProcessSight
from loopcanary.wire import Json
from loopcanary.words.text import count_of, library_path

_PERIOD_MAX = 6
_LEAST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """The `period` frames before it, `times` more in a row."""

    period: int
    times: int


def rows(frames: Sequence[Frame]) -> list[Frame | Again]:
    """The frames, with only the first turn of functions that follow each other again and again."""
    keys = [(frame.file, frame.qualname) for frame in frames]
    found: list[Frame | Again] = []
    at = 0
    while at < len(frames):
        period, turns = _repetition(keys, at)
        if turns < _LEAST:
            found.append(frames[at])
            at += 1
            continue
        found += [*frames[at : at + period], Again(period=period, times=turns - 1)]
        at += period * turns
    return found


def _repetition(keys: Sequence[tuple[str, str]], at: int) -> tuple[int, int]:
    """(period, turns) of the repetition that covers most from there, with the shortest period."""
    best = (1, 1)
    for period in range(1, _PERIOD_MAX + 1):
        turns = 1
        first = keys[at : at + period]
        while keys[at + turns * period : at + (turns + 1) * period] == first:
            turns += 1
        if turns >= _LEAST and period * turns > best[0] * best[1]:
            best = (period, turns)
    return best


_ROWS_MAX = 40


def frame_lines(
    frames: Sequence[Frame], process: ProcessSight, everything: bool
) -> Iterator[Pieces | SourceLine]:
    """A line for each frame, with the text of the innermost one of the program's own."""
    listed: Sequence[Frame | Again] = frames if everything else rows(frames)
    most = len(listed) if everything else _ROWS_MAX
    shown_source = False
    for row in listed[:most]:
        if isinstance(row, Again):
            which = "the same function" if row.period == 1 else f"these {row.period} functions"
            yield said(dim(f"... {which}, {count_of(row.times, 'more time')}"))
            continue
        yield _frame(row)
        source = process.sources.get((row.file, row.line))
        if source and not shown_source and not is_library(row):
            shown_source = True
            yield _source(row, source)
    if len(listed) > most:
        yield said(dim(f"... and {count_of(len(listed) - most, 'more line')} (--all shows them)"))


def is_library(frame: Frame) -> bool:
    """Whether the frame's file is the standard library's or an installed package's."""
    return frame.file.startswith("<frozen") or library_path(frame.file) != frame.file


def _frame(frame: Frame) -> Pieces:
    if is_library(frame):
        place = place_of(frame.file, frame.line, is_own=False, shown=library_path(frame.file))
        return said(place, Piece(f" in {name(frame.qualname).text}", Tone.DIM))
    return said(place_of(frame.file, frame.line), " in ", name(frame.qualname))


def _source(frame: Frame, line: str) -> SourceLine:
    one_line = frame.end_line in (0, frame.line) and frame.column > 0
    bare = line.lstrip()
    left = len(line.encode()) - len(bare.encode())  # columns are bytes
    columns = (frame.column - left, frame.end_column - left) if one_line else (0, 0)
    return SourceLine(bare.rstrip(), *columns)


def frame_to_dict(frame: Frame) -> Json:
    """The frame's place, as JSON has it."""
    return {
        "function": frame.function,
        "qualname": frame.qualname,
        "file": frame.file,
        "line": frame.line,
        "end_line": frame.end_line,
        "column": frame.column,
        "end_column": frame.end_column,
    }
