"""Whether a line of source is repeated by a loop of its own function.

A position that many samples share is one long call only if nothing repeats it: `x += i * i` in a loop does
not move for a sampler either.
"""

from __future__ import annotations

import re

from loopcanary.diagnosis.code.blocks import headers_around
from loopcanary.model import Frame

_LOOP = re.compile(r"(?:async )?for\b|while\b")
_COMPREHENSION = re.compile(r"\bfor\b.+?\bin\b")
_COMPREHENSION_FRAMES = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")


def is_repeated(lines: tuple[str, ...], frame: Frame) -> bool:
    """Whether the frame's position lies in a `for` or `while` of its function, in a loop's head, or in a
    comprehension. `frame.line` must be a line of `lines`."""
    if frame.qualname.endswith(_COMPREHENSION_FRAMES):
        return True
    here = lines[frame.line - 1]
    if is_loop(here.lstrip()) or _in_comprehension(lines, frame):
        return True
    return any(is_loop(header) for _, header in headers_around(lines, frame))


def is_loop(header: str) -> bool:
    """Whether a line begins a `for` or `while`."""
    return _LOOP.match(header) is not None


def is_loop_head(lines: tuple[str, ...], frame: Frame) -> bool:
    """Whether the position is what a `for` runs over: the text after `in`, also of a comprehension."""
    start = max(frame.column - 1, 0)
    before = lines[frame.line - 1].encode()[:start].decode(errors="replace").rstrip()
    return before.endswith(" in") and re.search(r"\bfor\b", before) is not None


def _in_comprehension(lines: tuple[str, ...], frame: Frame) -> bool:
    """A `for ... in` on the same line, outside of the position itself."""
    if not (frame.column and frame.end_column):
        return False
    raw = lines[frame.line - 1].encode()
    end_line = min(max(frame.end_line, frame.line), len(lines))
    before = raw[: frame.column - 1].decode(errors="replace")
    after = lines[end_line - 1].encode()[frame.end_column - 1 :].decode(errors="replace")
    return _COMPREHENSION.search(f"{before} {after}") is not None
