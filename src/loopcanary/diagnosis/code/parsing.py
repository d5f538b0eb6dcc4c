"""Source as a syntax tree, made beside the program's own threads.

CPython before 3.11.8 counts the depth of all trees that are being made in one place (gh-106905). Where the
collector runs Python code while the program makes a tree, and we make one meanwhile, `ast.parse` raises
SystemError in the program. There we wait for it. (From 3.12 on the collector never runs within a tree.)
"""

from __future__ import annotations

import ast
import sys
from types import FrameType
from typing import Any

from loopcanary.thread_frames import thread_frames
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
    """Whether it is an expression."""
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
    try:
        return ast.parse(text, mode=mode)
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
