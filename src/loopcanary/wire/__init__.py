"""Values as JSON-able dicts and back: contract 7.3 of the design (docs/internals/report-schema.md).

The form follows from the frozen dataclass itself (`parts`); what differs is said there (`model.spelling`).
Fields are added, never renamed. Durations go out as `_ms` floats, times as RFC 3339 in UTC with nine
decimals; both come back to the same nanosecond (durations: up to 2**51 ns, 26 days, where a float still
has a digit to spare). What comes in is not trusted: anything that is not what the contract says raises
WireError, which names the field, its value and what was expected.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from loopcanary.wire.form import SPECIAL, form_of
from loopcanary.wire.special import FORMS
from loopcanary.wire.values import Misfit, UnknownKindError, WireError, time_from_text, time_to_text

__all__ = [
    "SCHEMA_VERSION",
    "Json",
    "UnknownKindError",
    "WireError",
    "from_wire",
    "time_from_text",
    "time_to_text",
    "to_wire",
]

Json = dict[str, Any]
_T = TypeVar("_T")

SCHEMA_VERSION: Final = 1
SPECIAL.update(FORMS)


def to_wire(value: Any) -> Json:
    """The value, a frozen dataclass of ours, as a new JSON-able dict."""
    return form_of(type(value)).write(value)


def from_wire(kind: type[_T], document: object, path: str = "") -> _T:
    """The value that `to_wire`, or another writer of the same schema, wrote.

    Args:
        kind: the class of the value.
        document: what `json` read. Unknown fields are ignored, missing ones have their defaults.
        path: the document's name in error messages; the class by default.

    Raises:
        WireError: a field is missing or not what the contract says.
    """
    try:
        return form_of(kind).read(document)
    except Misfit as misfit:
        raise WireError(misfit.words(path or kind.__name__.lower())) from None
