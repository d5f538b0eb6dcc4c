"""Titles of windows, as scenes. A title may hold anything: a document's name, a counter, a whole message. As
a scene it is one line, and a program has few of them, even if its titles change often.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from loopcanary.words.text import printable

TITLES_MAX = 32
VARIANTS_MAX = 4
"""Titles that differ in their numbers alone, or in the text before the program's name; more are one."""
LENGTH_MAX = 80
OTHER_TITLES = "(other windows)"
_RAW_MAX = 1_024
_CHANGED_MARKS = "*●• "
_NUMBERS = re.compile(r"\d+")
_TAIL = re.compile("\\s[-\N{EN DASH}\N{EM DASH}|\N{MIDDLE DOT}:]\\s(?=\\S)")


def _without_numbers(title: str) -> str:
    """`Inbox (3)` -> `Inbox (#)`."""
    return _NUMBERS.sub("#", title)


def _without_document(title: str) -> str:
    """`letter.txt - Editor` -> `... - Editor`: the program's name is last."""
    begins = [separator.start() for separator in _TAIL.finditer(title)]
    return f"...{title[begins[-1] :]}" if begins else title


_FORMS: tuple[Callable[[str], str], ...] = (_without_numbers, _without_document)


class Titles:
    """The titles of one process. Any thread, under the GIL: at worst there is a title too many."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}
        self._variants: dict[str, set[str]] = {}

    def scene_of(self, title: str, otherwise: str) -> str:
        """The scene; `otherwise`, the window's class, for one without a title. The answer stays alive."""
        clean = printable(title[:_RAW_MAX].strip(_CHANGED_MARKS), LENGTH_MAX)
        clean = clean or printable(otherwise, LENGTH_MAX)
        known = self._told.get(clean)
        if known is not None:
            return known
        for form in _FORMS:
            clean = self._in_form(clean, form(clean))
        if clean not in self._told:
            if len(self._told) >= TITLES_MAX:
                clean = OTHER_TITLES
            self._told.setdefault(clean, clean)
        return self._told[clean]

    def _in_form(self, title: str, form: str) -> str:
        """The title itself while there are few of this form."""
        if form == title:
            return title
        variants = self._variants.get(form)
        if variants is None:
            if len(self._variants) >= 2 * TITLES_MAX:
                return form
            variants = self._variants[form] = set()
        if title in variants or len(variants) < VARIANTS_MAX:
            variants.add(title)
            return title
        return form
