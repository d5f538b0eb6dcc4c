"""Stacks that a tracer notes in the program's work, and what its issue says of them: frames, the line to
change, identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType

from loopcanary.model.stack_frame import StackFrame

Places = tuple[tuple[CodeType, int], ...]
"""Code and line, innermost first: no frame is kept alive by them."""
Owns = Callable[[str], bool]
"""Whether a file is the program's own code."""
_FRAMES_MAX = 16


def noted(frame: FrameType | None, is_outermost: Callable[[FrameType], bool]) -> Places:
    """Where this frame was called from, up to the outermost one that counts."""
    found: list[tuple[CodeType, int]] = []
    while frame is not None and len(found) < _FRAMES_MAX:
        found.append((frame.f_code, frame.f_lineno or 0))
        frame = None if is_outermost(frame) else frame.f_back
    return tuple(found)


def frames_of(places: Iterable[tuple[CodeType, int]], owns: Owns) -> Iterator[StackFrame]:
    """As an issue keeps them."""
    for code, line in places:
        yield StackFrame(
            function=code.co_name,
            qualname=code.co_qualname,
            file=code.co_filename,
            line=line,
            in_app=owns(code.co_filename),
        )
