"""Text in Markdown that stays text: escapes, code spans, code blocks."""

from __future__ import annotations

import re

from loopcanary.model.wording import printable

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


def _split(text: str) -> list[str]:
    return re.split(r"(&(?:amp|lt|gt|#64);)", text)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
