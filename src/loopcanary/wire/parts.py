"""The parts of a class's JSON form, read off its fields: for `form`, and for the schema of the reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Final, get_type_hints

from loopcanary.model.spelling import Spelling, spelling_of

_UNITS: Final = (("_wall_ns", "_at"), ("_ns", "_ms"), ("_mhz", "_hz"))
"""Endings of fields and what JSON has in their place, the longest first."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One field, or one property that is written."""

    attribute: str
    name: str
    """In JSON."""
    hint: Any
    """Its type."""
    spelling: Spelling
    field: dataclasses.Field[Any] | None
    """None: a property, which is not read."""

    @property
    def unit(self) -> str:
        """`_wall_ns`, `_ns` or `_mhz`; empty: none that JSON writes in another way."""
        return unit_of(self.attribute)


def parts_of(kind: type) -> list[Part]:
    """The parts of a dataclass's form, in the order of its JSON."""
    hints = get_type_hints(kind)
    parts: list[Part] = []
    for field in dataclasses.fields(kind):
        spelling = spelling_of(field.metadata)
        name = spelling.name or wire_name(field.name)
        hint = hints[field.name]
        parts.append(Part(attribute=field.name, name=name, hint=hint, spelling=spelling, field=field))
    for attribute, after, hint in _written(kind):
        place = next(index for index, part in enumerate(parts) if part.attribute == after)
        name = wire_name(attribute)
        part = Part(attribute=attribute, name=name, hint=hint, spelling=Spelling(), field=None)
        parts.insert(place + 1, part)
    return parts


def _written(kind: type) -> Iterator[tuple[str, str, Any]]:
    """Each property that is written: its name, the attribute it follows, its type."""
    marked = {
        name: member.fget
        for owner in reversed(kind.__mro__)
        for name, member in vars(owner).items()
        if hasattr(getattr(member, "fget", None), "wire_after")
    }
    for name, function in marked.items():
        yield name, function.wire_after, get_type_hints(function)["return"]


def unit_of(attribute: str) -> str:
    """The ending of an attribute's name that JSON has in another unit; empty: none."""
    return next((ending for ending, _ in _UNITS if attribute.endswith(ending)), "")


def wire_name(attribute: str) -> str:
    """`duration_ns` -> `duration_ms`, `began_wall_ns` -> `began_at`, `refresh_mhz` -> `refresh_hz`."""
    for ending, written in _UNITS:
        if attribute.endswith(ending):
            return attribute.removesuffix(ending) + written
    return attribute
