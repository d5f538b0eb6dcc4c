"""A name for a request without a known route: its path without what looks like a value."""

from __future__ import annotations

from collections.abc import Iterable

from loopcanary.integrations.telling import method_word

_SEGMENT_MAX = 32
_NAMES_MAX = 512
_OTHER = "other"


class Paths:
    """Gives `GET /orders/{}` for `/orders/4711`. A segment with a digit, a strange sign or great length
    is taken for a value. Beyond 512 different names all are "other": nothing grows with what clients make up.

    Any thread.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}

    def name(self, method: object, path: str) -> str:
        key = (method_word(method), "/".join(_plain(path.split("/"))))
        name = self._known.get(key)
        if name is None:
            name = f"{key[0]} {key[1]}" if len(self._known) < _NAMES_MAX else _OTHER
            if name != _OTHER:
                self._known[key] = name
        return name


def _plain(segments: Iterable[str]) -> Iterable[str]:
    return (segment if _is_word(segment) else "{}" for segment in segments)


def _is_word(segment: str) -> bool:
    letters = segment.replace("-", "").replace("_", "").replace(".", "")
    return not segment or (len(segment) <= _SEGMENT_MAX and letters.isascii() and letters.isalpha())
