"""The parts of a class's JSON form, read off its fields: for `form`, and for the schema of the reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar, Final, get_args, get_origin, get_type_hints

from loopcanary.late_dataclass import dataclass
from loopcanary.model import IssueKind, KilledBy, StallScope
from loopcanary.model.spelling import Spelling, spelling_of

_UNITS: Final = (("_wall_ns", "_at"), ("_ns", "_ms"), ("_mhz", "_hz"))
"""Endings of fields and their spelling in JSON, the longest first."""
_NOT_LOADED: Final = {"IssueKind": IssueKind, "KilledBy": KilledBy, "StallScope": StallScope}
"""Types that model.evidence, which most programs load, names for checkers only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WirePart:
    """A field; or a constant of the class or a property, which are written only."""

    attribute: str
    name: str
    hint: Any
    spelling: Spelling
    field: dataclasses.Field[Any] | None
    """None: it is not read."""

    @property
    def unit(self) -> str:
        """`_wall_ns`, `_ns` or `_mhz`; empty: JSON has the value as it is."""
        return unit_of(self.attribute)


def parts_of(kind: type) -> list[WirePart]:
    """The parts of a dataclass's form, in the order of its JSON."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    hints = get_type_hints(kind, None, _NOT_LOADED)
    parts = [_part(name, hint, fields.get(name)) for name, hint in hints.items()]
    for attribute, after, hint in _written(kind):
        place = next(index for index, part in enumerate(parts) if part.attribute == after)
        parts.insert(place + 1, _part(attribute, hint, None))
    return parts


def _part(attribute: str, hint: Any, field: dataclasses.Field[Any] | None) -> WirePart:
    spelling = Spelling() if field is None else spelling_of(field.metadata)
    if get_origin(hint) is ClassVar:
        (hint,) = get_args(hint)
    name = spelling.name or wire_name(attribute)
    return WirePart(attribute=attribute, name=name, hint=hint, spelling=spelling, field=field)


def _written(kind: type) -> Iterator[tuple[str, str, Any]]:
    """The written properties: name, the attribute before it, type."""
    marked = {
        name: member.fget
        for owner in reversed(kind.__mro__)
        for name, member in vars(owner).items()
        if hasattr(getattr(member, "fget", None), "wire_after")
    }
    for name, function in marked.items():
        yield name, function.wire_after, get_type_hints(function)["return"]


def unit_of(attribute: str) -> str:
    """The ending that says a unit which JSON has in another one; empty: there is none."""
    return next((ending for ending, _ in _UNITS if attribute.endswith(ending)), "")


def wire_name(attribute: str) -> str:
    """`duration_ns` -> `duration_ms`, `began_wall_ns` -> `began_at`, `refresh_mhz` -> `refresh_hz`."""
    for ending, written in _UNITS:
        if attribute.endswith(ending):
            return attribute.removesuffix(ending) + written
    return attribute
