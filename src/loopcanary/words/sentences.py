"""Sentences that remember what they say, so that they can be said anew in better words.

A verdict holds codes and values; here they become English. A Sentence is text for all who read it. Stores
and bundles keep code and values beside the text (`coded`), and read them in the words of today (`spoken`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from loopcanary.model.units import format_duration
from loopcanary.words.android import ANDROID
from loopcanary.words.evidence import EVIDENCE
from loopcanary.words.libraries import text_of
from loopcanary.words.remedies import AROUND, REMEDIES, Remedy
from loopcanary.words.text import count_of
from loopcanary.words.titles import TITLES

TEMPLATES: Mapping[str, str] = {
    **EVIDENCE,
    **ANDROID,
    **{f"title:{code}": template for code, template in TITLES.items()},
    **AROUND,
    **{f"try:{remedy.id}": remedy.text for remedy in REMEDIES},
}
"""All but the remedies of libraries, whose files are read when one is wanted."""
_TRY = "try:"
_SPOKEN_FIELDS = ("title", "evidence", "advice")
_SAID = "said"
_BEFORE = (" ", ",", ";")
_DEPTH_MAX = 4
"""How deep sentences lie in each other's values."""
_UNKNOWN = {"`{call}`": "the call", "`{holder}`": "the thread that holds it"}
"""What a remedy says for a value that it does not have."""


class Sentence(str):
    """Text, with the code and the values that it was made from."""

    __slots__ = ("code", "values")
    code: str
    values: dict[str, Any]

    def __new__(cls, code: str, values: dict[str, Any]) -> Self:
        """The words for a code. Raises KeyError: there is no such code."""
        self = super().__new__(cls, _filled(_template(code), values))
        self.code, self.values = code, values
        return self

    def __getnewargs__(self) -> tuple[str, dict[str, Any]]:  # type: ignore[override]
        return self.code, self.values


def say(code: str, /, **values: object) -> Sentence:
    """The sentence of a code. Values: text, numbers, nanoseconds, other sentences, and lists of these."""
    return Sentence(code, values)


def advice(remedy: Remedy, values: dict[str, Any]) -> str:
    """The sentence of a remedy; of a third party's, which the next reader may not have, as text alone."""
    code = f"{_TRY}{remedy.id}"
    try:
        is_ours = _template(code) == remedy.text
    except KeyError:
        is_ours = False
    return Sentence(code, values) if is_ours else _filled(remedy.text, values)


def coded(document: dict[str, Any]) -> dict[str, Any]:
    """An issue's document for a store: as it is, and under `said` the codes and values of its sentences."""
    said = {name: _coded(document[name]) for name in _SPOKEN_FIELDS if _has_code(document.get(name))}
    return {**document, _SAID: said} if said else document


def spoken(document: Any) -> Any:
    """The document that `coded` made from, its sentences in the words of today.

    Text stays as it is where it has no code, or one of another version. Raises nothing.
    """
    if not isinstance(document, dict) or not isinstance(said := document.get(_SAID), dict):
        return document
    texts = {name: value for name, value in document.items() if name != _SAID}
    known = [name for name in _SPOKEN_FIELDS if name in said and name in texts]
    return {**texts, **{name: _anew(said[name], texts[name]) for name in known}}


def _has_code(value: Any) -> bool:
    return any(isinstance(one, Sentence) for one in (value if isinstance(value, (list, tuple)) else (value,)))


def _coded(value: Any) -> Any:
    if isinstance(value, Sentence):
        return [value.code, {name: _coded(inner) for name, inner in value.values.items()}]
    return [_coded(one) for one in value] if isinstance(value, (list, tuple)) else value


def _anew(said: Any, text: Any) -> Any:
    """The field that a stored code, or a list of these, stands for; `text`: what the field has."""
    if isinstance(text, list):
        return [_anew(*pair) for pair in zip(said, text, strict=True)] if _fits(said, text) else text
    try:
        anew = _value(said)
    except KeyError:
        return text
    return anew if isinstance(anew, Sentence) else text


def _fits(said: Any, texts: list[Any]) -> bool:
    return isinstance(said, list) and len(said) == len(texts)


def _value(stored: Any, depth: int = 0) -> Any:
    """A value of a sentence. Raises KeyError: a code of another version."""
    match stored:
        case [str(code), dict(values)] if depth < _DEPTH_MAX:
            return Sentence(code, {name: _value(inner, depth + 1) for name, inner in values.items()})
        case list() if depth < _DEPTH_MAX:
            return [_value(one, depth + 1) for one in stored]
    return stored


def _template(code: str) -> str:
    """The words for a code. Raises KeyError: there is no such code."""
    found = TEMPLATES.get(code) or (text_of(code[len(_TRY) :]) if code.startswith(_TRY) else None)
    if found is None:
        raise KeyError(code)
    return found


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
    """`ns`: a duration; `%`: a share; `n`: a count; `#thing`: things counted; `and`: a list; `inner`: a
    sentence within another; `base`: a file without its folder. A blank or punctuation goes before a value
    that is there."""
    if isinstance(value, (int, float)):
        return _figure(value, form)
    words = _listed(value, form) if isinstance(value, list) else "" if value is None else str(value)
    if form == "inner" and words[1:2].islower():
        return words[0].lower() + words[1:]
    if form == "base":
        return words.replace("\\", "/").rpartition("/")[2]
    return form + words if words and form.startswith(_BEFORE) else words


def _figure(value: float, form: str) -> str:
    match form[:1]:
        case "":
            return str(value)
        case "%":
            return f"{round(100 * value)} %"
        case "#":
            return count_of(int(value), form[1:])
    return format_duration(int(value)) if form == "ns" else f"{value:,}"


def _listed(values: list[Any], form: str) -> str:
    words = [str(value) for value in values]
    if form != "and" or len(words) < 2:
        return ", ".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
