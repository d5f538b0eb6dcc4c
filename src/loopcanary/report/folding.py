"""Stacks folded to the program's own code: runs of frames of others become one line each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import PurePath

from loopcanary.late_dataclass import dataclass
from loopcanary.model import StackFrame
from loopcanary.words.text import library_path


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
