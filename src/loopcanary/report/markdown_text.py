"""Text in Markdown that stays text: escapes, code spans, code blocks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loopcanary.report.folding import Fold, folded
from loopcanary.words.text import count_of, place, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.model import WeightedStack

_NAME_MAX = 100
_ACTIVE = re.compile(r"[\\`*_\[\]#|~$]|:(?=//)|(?<=www)\.")


def escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    text = printable(text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;")
    # Entities made above hold `#` and `;`, which must stay.
    return "".join(part if part.startswith("&") else _ACTIVE.sub(r"\\\g<0>", part) for part in _split(text))


def code(text: str) -> str:
    """Text in a code span; its fence is longer than any run of backticks inside."""
    text = printable(text, _NAME_MAX)
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}" if text else ""


def code_block(lines: list[str], language: str = "") -> list[str]:
    """Lines in a fenced block; they are printable already."""
    fence = "`" * max(3, max((_longest_run(line) for line in lines), default=0) + 1)
    return [fence + language, *lines, fence]


def stack_lines(stack: WeightedStack, folder: str) -> Iterator[str]:
    """Frames for a code block, innermost first; the program's own are marked. Paths below `folder` relative
    to it."""
    for row in folded(stack.frames):
        if isinstance(row, Fold):
            yield f"  {count_of(row.count, 'frame')} in {printable(', '.join(row.packages), _NAME_MAX)}"
        else:
            mark = ">" if row.in_app else " "
            at = printable(place(row.file, row.line, folder), 300)
            yield f"{mark} {at} in {printable(row.qualname, _NAME_MAX)}"


def _split(text: str) -> list[str]:
    return re.split(r"(&(?:amp|lt|gt|#64);)", text)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
