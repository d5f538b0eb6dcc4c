"""Values as JSON-able dicts and back: contract 7.3 of the design (docs/internals/report-schema.md).

The form follows from the frozen dataclass itself (`parts`); what differs is said there (`model.spelling`).
Fields are added, never renamed. Durations go out as `_ms` floats, times as RFC 3339 in UTC with nine
decimals; both come back to the same nanosecond (durations: up to 2**51 ns, 26 days, where a float still
has a digit to spare). What comes in is not trusted: anything that is not what the contract says raises
WireError, which names the field, its value and what was expected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from loopcanary.registry import KINDS, REGISTRY, called
from loopcanary.wire import special as _special  # noqa: F401 - registers the forms that no field describes
from loopcanary.wire.form import form_of
from loopcanary.wire.misfit import Misfit, UnknownKindError, WireError
from loopcanary.wire.times import time_from_text, time_to_text

if TYPE_CHECKING:
    from loopcanary.model import Issue

__all__ = [
    "SCHEMA_VERSION",
    "Json",
    "UnknownKindError",
    "WireError",
    "from_wire",
    "issue_from_wire",
    "readable_kinds",
    "time_from_text",
    "time_to_text",
    "to_wire",
    "unpack_of",
]

Json = dict[str, Any]
_T = TypeVar("_T")

SCHEMA_VERSION: Final = 1


def to_wire(value: Any) -> Json:
    """The value, a frozen dataclass of ours, as a JSON-able dict of its own."""
    return form_of(type(value)).write(value)


def from_wire(kind: type[_T], document: object, path: str = "") -> _T:
    """The value that `to_wire` wrote, or another writer of the same schema.

    Args:
        kind: the class of the value.
        document: what `json` read. Fields it does not know are ignored, missing ones have their defaults.
        path: what error messages call the document; the class by default.

    Raises:
        WireError: a field is missing or not what the contract says.
    """
    try:
        return form_of(kind).read(document)
    except Misfit as misfit:
        raise WireError(misfit.words(path or kind.__name__.lower())) from None


def issue_from_wire(document: object) -> Issue:
    """As `from_wire`, of an issue whose `kind` says its class. UnknownKindError: no such kind can be read."""
    name = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise WireError(f"issue.kind: {name!r} is no kind of issue")
    return cast("Issue", from_wire(_class_of(name), document, "issue"))


def readable_kinds() -> list[str]:
    """The kinds whose issues can be read here: those of plugins that are missing or fail are not."""
    return [one.name for one in REGISTRY.of(KINDS) if one.is_built_in or _is_readable(one.name)]


def _is_readable(name: str) -> bool:
    try:
        _class_of(name)
    except UnknownKindError:
        return False
    return True


def unpack_of(document: object) -> Any:
    """What makes an issue of a store's document, where its kind has a form of its own; None: it is as JSON.
    As `issue_from_wire` it raises UnknownKindError."""
    name = document.get("kind") if isinstance(document, dict) else None
    return _loaded(name, "unpacked") if isinstance(name, str) else None


def _class_of(name: str) -> Any:
    return _loaded(name, "type")


def _loaded(name: str, what: str) -> Any:
    found = REGISTRY.find(KINDS, name)
    if found is None:
        raise UnknownKindError(name, "its plugin is not installed")
    try:
        return called(getattr(found.load(), what))
    except Exception as error:
        if found.is_built_in:
            raise
        raise UnknownKindError(name, "its plugin cannot be loaded") from error
