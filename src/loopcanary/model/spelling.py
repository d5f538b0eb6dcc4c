"""What a field's or property's JSON form has that its name and type do not say.

`loopcanary.wire` derives the form of a frozen dataclass from its fields: `duration_ns` becomes
`duration_ms`, `began_wall_ns` becomes `began_at`, an enum its value. A field that differs says so once,
where it is declared:

    stalls: tuple[str, ...] = field(default=(), metadata=spelled(name="stall_ids"))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from loopcanary.late_dataclass import dataclass

_F = TypeVar("_F", bound=Callable[..., Any])

WIRE: Final = "wire"
"""The key of a field's metadata that holds its Spelling."""
NO_DEFAULT: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """How one field is written and read."""

    name: str = ""
    """Name in JSON; empty: derived from the field's name and unit."""
    inside: str = ""
    """The JSON object that contains this field together with others; empty: no such object."""
    flat: bool = False
    """The fields of the nested value are written among those of the outer one."""
    apart: bool = False
    """`loopcanary.wire.special` writes and reads it."""
    absent: Any = NO_DEFAULT
    """The value if a document lacks the field; if not given, the field's own default."""
    needed: bool = False
    """A document must have it, although the field has a default."""
    like: str = ""
    """An earlier field whose value this field gets if a document lacks it."""
    keys: tuple[str, ...] = ()
    """A tuple of numbers is written as an object with these keys."""
    row: tuple[str, ...] = ()
    """Each item of a tuple of tuples is written as an object with these fields."""
    bounds: tuple[int, int] | None = None
    """The smallest and the largest value that is accepted."""


_PLAIN = Spelling()


def spelled(**what: Any) -> dict[str, Spelling]:
    """Metadata for `dataclasses.field`; the arguments are the fields of Spelling."""
    return {WIRE: Spelling(**what)}


NEEDED: Final = spelled(needed=True)
"""Metadata of a field with a default that a document must have nevertheless."""


def spelling_of(metadata: Any) -> Spelling:
    """The Spelling of a field's metadata; of a field without one, all defaults."""
    found: Spelling = metadata.get(WIRE, _PLAIN)
    return found


def written(*, after: str) -> Callable[[_F], _F]:
    """A property that is written to JSON behind the field `after`, and never read: it follows from others."""

    def mark(function: _F) -> _F:
        function.wire_after = after  # type: ignore[attr-defined]
        return function

    return mark
