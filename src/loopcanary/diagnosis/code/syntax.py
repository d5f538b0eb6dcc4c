"""Source as a syntax tree, made beside the program's own threads.

CPython before 3.11.8 counts the depth of all trees that are being made in one place (gh-106905). Where the
collector runs Python code while the program makes a tree, and we make one meanwhile, `ast.parse` raises
SystemError in the program. There we wait for it, and let no collection begin in ours. (From 3.12 on the
collector never runs within a tree.)
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import partial
from types import FrameType
from typing import Any

from loopcanary.model import Frame
from loopcanary.thread_frames import call_uncollected, thread_frames
from loopcanary.unpatched import unpatched

HAS_ONE_COUNT = sys.version_info < (3, 11, 8)
_PARSE = ast.parse.__code__
_TRIES = 20
_AGAIN_S = 0.001


def expression(text: str) -> ast.expr:
    """The tree of an expression. SyntaxError, or ValueError: also where none can be made now."""
    tree: ast.Expression = _tree(text, "eval")
    return tree.body


def statement(text: str) -> ast.stmt:
    """That of the first statement; raises as `expression`, and IndexError where there is none."""
    tree: ast.Module = _tree(text, "exec")
    return tree.body[0]


def parses(text: str) -> bool:
    try:
        expression(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _tree(text: str, mode: str) -> Any:
    tries = _TRIES
    while HAS_ONE_COUNT and _is_being_made():
        tries -= 1
        if not tries:
            raise ValueError("the program makes a syntax tree")
        unpatched("time", "sleep")(_AGAIN_S)
    parse = partial(compile, text, "<unknown>", mode, ast.PyCF_ONLY_AST)
    try:
        return call_uncollected(parse) if HAS_ONE_COUNT else parse()
    except SystemError as error:  # the program came into the middle of ours
        raise ValueError(str(error)) from error


def _is_being_made() -> bool:
    """By any thread: also by this one, where the collector has called us."""
    return any(_is_within(frame) for frame in thread_frames().values())


def _is_within(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is _PARSE:
            return True
        frame = frame.f_back
    return False


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
