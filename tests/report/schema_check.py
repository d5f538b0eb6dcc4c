"""As much of JSON Schema 2020-12 as report-schema-1.json uses; an unknown keyword is an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}
_SILENT = {"$schema", "$defs", "title", "description"}


class Place(NamedTuple):
    root: dict[str, Any]
    path: str = "$"

    def below(self, step: str) -> Place:
        return Place(self.root, self.path + step)


def problems(value: Any, schema: dict[str, Any], place: Place) -> Iterator[str]:
    """What in the value breaks the schema."""
    for keyword, wanted in schema.items():
        if keyword not in _SILENT:
            yield from _CHECKS[keyword](value, wanted, place)


def _ref(value: Any, wanted: str, place: Place) -> Iterator[str]:
    return problems(value, place.root["$defs"][wanted.removeprefix("#/$defs/")], place)


def _type(value: Any, wanted: str | list[str], place: Place) -> Iterator[str]:
    kinds = [wanted] if isinstance(wanted, str) else wanted
    fits = any(
        isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
        for kind in kinds
    )
    if not fits:
        yield f"{place.path}: {value!r} is no {wanted}"


def _enum(value: Any, wanted: list[Any], place: Place) -> Iterator[str]:
    if value not in wanted:
        yield f"{place.path}: {value!r} is none of {wanted}"


def _pattern(value: Any, wanted: str, place: Place) -> Iterator[str]:
    if isinstance(value, str) and not re.search(wanted, value):
        yield f"{place.path}: {value!r} does not match {wanted}"


def _required(value: Any, wanted: list[str], place: Place) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{place.path}.{name} is missing" for name in wanted if name not in value)


def _properties(value: Any, wanted: dict[str, Any], place: Place) -> Iterator[str]:
    for name in wanted.keys() & (value.keys() if isinstance(value, dict) else ()):
        yield from problems(value[name], wanted[name], place.below(f".{name}"))


def _additional(value: Any, wanted: dict[str, Any], place: Place) -> Iterator[str]:
    for name, item in value.items() if isinstance(value, dict) else ():
        yield from problems(item, wanted, place.below(f".{name}"))


def _items(value: Any, wanted: dict[str, Any], place: Place) -> Iterator[str]:
    for index, item in enumerate(value if isinstance(value, list) else []):
        yield from problems(item, wanted, place.below(f"[{index}]"))


def _any_of(value: Any, wanted: list[dict[str, Any]], place: Place) -> Iterator[str]:
    found = [list(problems(value, option, place)) for option in wanted]
    if all(found):
        yield f"{place.path}: {found[0][0]}"


def _not(value: Any, wanted: dict[str, Any], place: Place) -> Iterator[str]:
    if not list(problems(value, wanted, place)):
        yield f"{place.path}: {value!r} fits {wanted}"


_CHECKS: dict[str, Callable[[Any, Any, Place], Iterator[str]]] = {
    "$ref": _ref,
    "type": _type,
    "const": lambda value, wanted, place: _enum(value, [wanted], place),
    "enum": _enum,
    "pattern": _pattern,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
    "anyOf": _any_of,
    "not": _not,
}
