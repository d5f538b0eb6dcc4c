"""Reading foreign JSON field by field, and times as text: what model.wire is built from."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, TypeVar

Json = dict[str, Any]

_T = TypeVar("_T")
_E = TypeVar("_E", bound=Enum)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_S = 1_000_000_000
_MS = 1_000_000
_EARLIEST_WALL_NS = -62_135_596_800 * _S
_LATEST_WALL_NS = 253_402_300_799 * _S + _S - 1
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


class WireError(ValueError):
    """A dict that is not what the contract says; the message names the field."""


def time_to_text(wall_ns: int) -> str:
    """RFC 3339 in UTC with nanoseconds; times outside the years 1 to 9999 become the nearest inside."""
    seconds, ns = divmod(min(max(wall_ns, _EARLIEST_WALL_NS), _LATEST_WALL_NS), _S)
    # isoformat pads the year to four digits, which strftime does not do everywhere.
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}.{ns:09}Z"


def time_from_text(text: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 time with any offset. Raises ValueError."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no RFC 3339 time, such as 2026-01-31T12:00:00Z")
    offset = "+00:00" if match[4] in "Zz" else match[4]
    moment = datetime.fromisoformat(f"{match[1]}T{match[2]}{offset}")
    return (moment - _EPOCH) // timedelta(seconds=1) * _S + int((match[3] or "").ljust(9, "0"))


def ms(ns: int) -> float:
    """Nanoseconds as the milliseconds of the wire."""
    return ns / _MS


def optional_ms(ns: int | None) -> float | None:
    """As `ms`, None stays None."""
    return None if ns is None else ns / _MS


class Fields:
    """One JSON object under inspection; every getter raises WireError with the field's path."""

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, Mapping):
            raise WireError(f"{path}: an object is wanted, not {type(value).__name__}")
        self._value = value
        self._path = path

    def _wrong(self, name: str, wanted: str) -> WireError:
        got = type(self._value.get(name)).__name__ if name in self._value else "nothing"
        return WireError(f"{self._path}.{name}: {wanted} is wanted, not {got}")

    def has(self, name: str) -> bool:
        """The field is there and not null."""
        return self._value.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        """A text."""
        value = self._value.get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "text")
        return value

    def optional_text(self, name: str) -> str | None:
        """A text, None where it is null or missing."""
        return self.text(name) if self.has(name) else None

    def integer(self, name: str, default: int | None = None) -> int:
        """A whole number."""
        value = self._value.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(name, "a whole number")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number."""
        value = self._value.get(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise self._wrong(name, "a number")
        return float(value)

    def optional_integer(self, name: str) -> int | None:
        """A whole number, None where it is null or missing."""
        return self.integer(name) if self.has(name) else None

    def optional_number(self, name: str) -> float | None:
        """A finite number, None where it is null or missing."""
        return self.number(name) if self.has(name) else None

    def flag(self, name: str, default: bool | None = None) -> bool:
        """True or false."""
        value = self._value.get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def ns(self, name: str, default: float | None = None) -> int:
        """Nanoseconds of a field in milliseconds."""
        return round(self.number(name, default) * _MS)

    def optional_ns(self, name: str) -> int | None:
        """As `ns`, None where it is null or missing."""
        return self.ns(name) if self.has(name) else None

    def time(self, name: str) -> int:
        """Nanoseconds since 1970 of an RFC 3339 field."""
        try:
            return time_from_text(self.text(name))
        except ValueError as error:
            raise WireError(f"{self._path}.{name}: {error}") from None

    def optional_time(self, name: str) -> int | None:
        """As `time`, None where it is null or missing."""
        return self.time(name) if self.has(name) else None

    def choice(self, name: str, kind: type[_E], default: str | None = None) -> _E:
        """The member of an enum whose value the field holds."""
        value = self.text(name, default)
        try:
            return kind(value)
        except ValueError:
            raise WireError(f"{self._path}.{name}: {value!r} is no {kind.__name__.lower()}") from None

    def optional_choice(self, name: str, kind: type[_E]) -> _E | None:
        """As `choice`, None where it is null or missing."""
        return self.choice(name, kind) if self.has(name) else None

    def one(self, name: str, read: Callable[[Fields], _T]) -> _T:
        """An object, read by `read`."""
        return read(Fields(self._value.get(name), f"{self._path}.{name}"))

    def optional(self, name: str, read: Callable[[Fields], _T]) -> _T | None:
        """As `one`, None where it is null or missing."""
        return self.one(name, read) if self.has(name) else None

    def many(self, name: str, read: Callable[[Fields], _T]) -> tuple[_T, ...]:
        """A list of objects, each read by `read`."""
        path = f"{self._path}.{name}"
        return tuple(read(Fields(item, f"{path}[{i}]")) for i, item in enumerate(self._items(name)))

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        items = self._items(name)
        if not all(isinstance(item, str) for item in items):
            raise self._wrong(name, "a list of texts")
        return tuple(items)

    def counts(self, name: str) -> dict[str, int]:
        """An object of whole numbers."""
        value = self._value.get(name, {})
        if not isinstance(value, Mapping):
            raise self._wrong(name, "an object")
        fields = Fields(value, f"{self._path}.{name}")
        return {str(key): fields.integer(key) for key in value}

    def _items(self, name: str) -> list[Any]:
        value = self._value.get(name, [])
        if not isinstance(value, list | tuple):
            raise self._wrong(name, "a list")
        return list(value)
