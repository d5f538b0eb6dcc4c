"""Whether a loop lets a text grow by `+`, which copies the whole of it each time."""

from __future__ import annotations

import ast
import re

from loopcanary.diagnosis.code.call_sites import CallSites
from loopcanary.diagnosis.code.parsing import statement
from loopcanary.diagnosis.culprit.suspect import Suspect

_MOST = 0.6
"""Of the culprit's time, what one `+` must have had: a short text in a loop of other work costs little."""
_TEXT = r"(?<![\w.]){name} *(?::[^=]+)?= *[rbfRBF]{{0,2}}[\"']"


def is_growing_text(suspect: Suspect, sites: CallSites) -> bool:
    """Whether the culprit was mostly at `name += ...` or `name = name + ...` in a loop, where the source says
    that it is about text: by an operand, or by what the name was given first."""
    view = suspect.view
    there = sum(weight for at, below, weight in suspect.hits if at == view and not below)
    repeated, _ = sites.repetition(view) or (False, False)
    if not repeated or there < _MOST * sum(weight for _, _, weight in suspect.hits):
        return False
    site = sites.of(view)
    parts = _parts(site.text or "", site.source or "")
    if not parts:
        return False
    name = ast.unparse(parts[0])
    lines = sites.lines_of(view.function.file) if "." in name else sites.lines_before(view)
    begun = re.compile(_TEXT.format(name=re.escape(name)))
    return any(map(_is_text, parts)) or any(map(begun.search, lines))


def _parts(text: str, line: str) -> list[ast.expr]:
    """What grows, and what is added to it."""
    try:
        found = statement(text)
    except (SyntaxError, ValueError, IndexError):
        return []
    match found:
        case ast.AugAssign(op=ast.Add(), target=target, value=value):
            return [target, value]
        case ast.Expr(ast.BinOp(op=ast.Add()) as operation):
            added: list[ast.expr] = []
            left: ast.expr = operation
            while isinstance(left, ast.BinOp):
                added.append(left.right)
                left = left.left
            return [left, *added] if line.startswith(f"{ast.unparse(left)} = ") else []
    return []


def _is_text(part: ast.expr) -> bool:
    return isinstance(part, ast.JoinedStr) or (
        isinstance(part, ast.Constant) and isinstance(part.value, str | bytes)
    )
