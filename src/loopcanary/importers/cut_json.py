"""JSON that ends in the middle: a paste that was cut, a log whose process was killed while it wrote."""

from __future__ import annotations

import json
import re
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|"|[][{},]', re.DOTALL)
_HALF = r"\\u[dD][89abAB][0-9a-fA-F]{2}"
_TEXT = re.compile(
    rf'(?:[^"\\]|\\[^u]|{_HALF}\\u[0-9a-fA-F]{{4}}|(?!{_HALF})\\u[0-9a-fA-F]{{4}})*', re.DOTALL
)
"""Up to an escape that is not whole; two of them may be one character."""
_CLOSING = {"{": "}", "[": "]"}
_DEPTH_MAX = 50


def begin_of(text: str) -> Any:
    """The value as far as it is there; of a text that was cut its beginning, of a number nothing. None: it is
    not cut, or nothing of it can be read. Raises nothing."""
    still_open: list[str] = []
    until, left = 0, ""  # how far it is whole, and what is open there
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == '"':  # without an end
            rest = _TEXT.match(text, token.end())
            begun = text[: rest.end()] if rest is not None else text
            value = _closed(f'{begun}"', "".join(still_open))
            return _closed(text[:until], left) if value is None else value
        if mark in _CLOSING:
            still_open.append(mark)
        elif mark in ("}", "]") and (not still_open or _CLOSING[still_open.pop()] != mark):
            return None
        if len(still_open) > _DEPTH_MAX or (until and not still_open):
            return None
        if mark[0] != '"':
            until, left = token.start() if mark == "," else token.end(), "".join(still_open)
    return _closed(text[:until], left)


def _closed(text: str, still_open: str) -> Any:
    if not still_open:
        return None
    try:
        return json.loads(text + "".join(_CLOSING[mark] for mark in reversed(still_open)), strict=False)
    except (ValueError, RecursionError):
        return None
