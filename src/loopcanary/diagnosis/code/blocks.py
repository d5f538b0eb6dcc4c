"""The compound statements that a line of source lies in.

Read off the text by indentation, since parsing a whole file costs more than the rest of a diagnosis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from loopcanary.model import Frame

_LINES_MAX = 400
_SCOPE = re.compile(r"(?:async )?def\b|class\b")


def headers_around(lines: tuple[str, ...], frame: Frame) -> Iterator[tuple[int, str]]:
    """Line and text of the headers that a frame's position lies below, innermost first, up to that of its
    function. `frame.line` must be a line of `lines`."""
    depth = _indent(lines[frame.line - 1])
    first = max(frame.first_line, frame.line - _LINES_MAX, 1)
    for row in range(frame.line - 2, first - 2, -1):
        text = lines[row].lstrip()
        if not text or text.startswith("#"):
            continue
        indent = len(lines[row]) - len(text)
        if indent >= depth:
            continue
        depth = indent
        yield row + 1, text
        if _SCOPE.match(text):
            return


def block_at(lines: tuple[str, ...], header: int) -> tuple[str, ...]:
    """The lines of the block whose header is at a line, with it."""
    depth = _indent(lines[header - 1])
    end = next(
        (row for row in range(header, len(lines)) if lines[row].strip() and _indent(lines[row]) <= depth),
        len(lines),
    )
    return lines[header - 1 : end]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
