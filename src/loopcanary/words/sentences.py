"""Sentences that remember what they say, so that they can be said anew in better words.

A verdict holds codes and values; here they become English. A Sentence is text for all who read it. Stores and
bundles keep its code and its values (`coded`) and read it back in the words of today (`spoken`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from loopcanary.model.units import format_duration
from loopcanary.words.evidence import EVIDENCE
from loopcanary.words.remedies import REMEDIES, Remedy
from loopcanary.words.text import count_of
from loopcanary.words.titles import TITLES

TEMPLATES: Mapping[str, str] = {
    **EVIDENCE,
    **{f"title:{code}": template for code, template in TITLES.items()},
    **{f"try:{remedy.id}": remedy.text for remedy in REMEDIES},
}
_SPOKEN_FIELDS = ("title", "evidence", "advice")
_DEPTH_MAX = 4
"""How deep sentences lie in each other's values."""
_UNKNOWN = {"`{call}`": "the call", "`{holder}`": "the thread that holds it"}
"""What stands in a remedy for a value that it does not have."""


class Sentence(str):
    """Text, with the code and the values that it was made from."""

    __slots__ = ("code", "values")
    code: str
    values: dict[str, Any]

    def __new__(cls, code: str, values: dict[str, Any]) -> Self:
        """The words for a code; for one of another version's, the code and its values."""
        self = super().__new__(cls, _words(code, values))
        self.code, self.values = code, values
        return self

    def __getnewargs__(self) -> tuple[str, dict[str, Any]]:  # type: ignore[override]
        return self.code, self.values


def say(code: str, /, **values: object) -> Sentence:
    """The sentence of a code. Values: text, numbers, nanoseconds, other sentences, and lists of these."""
    return Sentence(code, values)


def advice(remedy: Remedy, values: dict[str, Any]) -> str:
    """The sentence of a remedy; of a third party's, which the next reader may not have, as text alone."""
    code = f"try:{remedy.id}"
    return Sentence(code, values) if TEMPLATES.get(code) is remedy.text else _filled(remedy.text, values)


def coded(document: dict[str, Any]) -> dict[str, Any]:
    """An issue's document for a store: in the place of each Sentence `[code, values]`."""
    return {**document, **{name: _coded(document[name]) for name in _SPOKEN_FIELDS if name in document}}


def spoken(document: Any) -> Any:
    """What `coded` made, with its sentences. Text that has no code stays; what is no document, too."""
    if not isinstance(document, dict):
        return document
    return {**document, **{name: _spoken(document[name]) for name in _SPOKEN_FIELDS if name in document}}


def _coded(value: Any) -> Any:
    if isinstance(value, Sentence):
        return [value.code, {name: _coded(inner) for name, inner in value.values.items()}]
    return [_coded(one) for one in value] if isinstance(value, (list, tuple)) else value


def _spoken(value: Any, depth: int = 0) -> Any:
    if not isinstance(value, list) or depth > _DEPTH_MAX:
        return value
    match value:
        case [str(code), dict(values)]:
            return Sentence(code, {str(name): _spoken(inner, depth + 1) for name, inner in values.items()})
    return [_spoken(one, depth + 1) for one in value]


def _words(code: str, values: dict[str, Any]) -> str:
    template = TEMPLATES.get(code)
    if template is None:
        return f"{code}: {', '.join(f'{name} {value}' for name, value in values.items())}"
    return _filled(template, values)


def _filled(template: str, values: dict[str, Any]) -> str:
    for place, words in _UNKNOWN.items():
        if values.get(place[2:-2]) is None:
            template = template.replace(place, words)
    return template.format_map(_Values(values))


class _Values(dict[str, Any]):
    """Values as a template shows them; one that another version did not write is `?`."""

    def __getitem__(self, name: str) -> _Shown:
        return _Shown(self.get(name, "?"))


class _Shown:
    """A value, shown as its place in the template asks."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __format__(self, form: str) -> str:
        try:
            return _show(self._value, form)
        except (TypeError, ValueError, ArithmeticError):
            return str(self._value)


def _show(value: Any, form: str) -> str:
    """`ns`: a duration; `%`: a share; `n`: a count; `#thing`: things counted; `and`: a list. Any other form
    comes before a value that is there."""
    if form == "ns":
        return format_duration(value)
    if form == "%":
        return f"{round(100 * value)} %"
    if form == "n":
        return f"{value:,}"
    if form.startswith("#"):
        return count_of(value, form[1:])
    words = _listed(value, form) if isinstance(value, list) else "" if value is None else str(value)
    return words if form in ("", "and") or not words else form + words


def _listed(values: list[Any], form: str) -> str:
    words = [str(value) for value in values]
    if form != "and" or len(words) < 2:
        return ", ".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
