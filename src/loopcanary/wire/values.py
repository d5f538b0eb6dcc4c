"""How a value of one type is written and read: numbers with units, texts, times, enums, lists, objects."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import partial
from operator import attrgetter
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

from loopcanary.model.issues.kind import IssueKind
from loopcanary.wire.parts import WirePart, unit_of, wire_name


class WireError(ValueError):
    """A document breaks the contract; the message names the field."""


class Misfit(Exception):  # noqa: N818 - it never leaves this package; WireError does
    """A value that its field cannot hold. Each level that it passes adds its step to the path."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self._problem = problem
        self._steps: list[str] = []

    def below(self, step: str) -> Misfit:
        """Adds the step of the next level out: `.name` or `[index]`."""
        self._steps.append(step)
        return self

    def words(self, root: str) -> str:
        """`stall.stacks[0].weight_ms: must be a number, not str`."""
        return f"{root}{''.join(reversed(self._steps))}: {self._problem}"


class nothing:  # noqa: N801 - its name is read by people: "must be text, not nothing"
    """The type of MISSING."""


MISSING = nothing()
"""The value of a field that a document does not have."""


def wanted(what: str, value: object) -> Misfit:
    """`must be text, not int`."""
    return Misfit(f"must be {what}, not {type(value).__name__}")


class UnknownKindError(WireError):
    """An issue of a kind that nothing here can read."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"issue.kind: {kind!r} cannot be read: {reason}")
        self.reason = reason


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_S = 1_000_000_000
_EARLIEST_WALL_NS = -62_135_596_800 * _S
_LATEST_WALL_NS = 253_402_300_799 * _S + _S - 1
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def time_to_text(wall_ns: int) -> str:
    """RFC 3339 in UTC with nanoseconds; the years 1 to 9999 are the bounds."""
    seconds, ns = divmod(min(max(wall_ns, _EARLIEST_WALL_NS), _LATEST_WALL_NS), _S)
    # isoformat pads the year to four digits, which strftime does not do everywhere.
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}.{ns:09}Z"


def time_from_text(text: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 time with any offset. ValueError: it is not such a time."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an RFC 3339 time, such as 2026-01-31T12:00:00Z")
    offset = "+00:00" if match[4] in "Zz" else match[4]
    moment = datetime.fromisoformat(f"{match[1]}T{match[2]}{offset}")
    return (moment - _EPOCH) // timedelta(seconds=1) * _S + int((match[3] or "").ljust(9, "0"))


_MS = 1_000_000
_MHZ = 1_000


class Codec(NamedTuple):
    read: Callable[[Any], Any]
    """Raises Misfit."""
    write: Callable[[Any], Any] | None = None
    """None: JSON has the value as it is."""
    plain: type | None = None
    """A value of just this type needs no reading."""


def codec_of(part: WirePart, nested: Callable[[type], Codec]) -> Codec:
    """The codec of a field; `nested` gives that of a dataclass. TypeError: no codec knows its type."""
    spelling = part.spelling
    if spelling.keys:
        return _keyed(spelling.keys)
    if spelling.row:
        return many_of(_row(spelling.row))
    codec = _typed(part.hint, part.unit, nested)
    return codec if spelling.bounds is None else _bounded(codec, *spelling.bounds)


def _typed(hint: Any, unit: str, nested: Callable[[type], Codec]) -> Codec:
    origin, arguments = get_origin(hint), get_args(hint)
    if NoneType in arguments:
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return _optional(_typed(inner, unit, nested))
    if origin is tuple and Ellipsis not in arguments:
        return _row_of([_typed(argument, "", nested) for argument in arguments])
    if origin is tuple:
        return _TEXTS if arguments[0] is str else many_of(_typed(arguments[0], unit, nested))
    if origin is dict:
        return _NAMED[arguments[1]]
    if unit:
        return _UNITS[unit]
    if hint in _SCALARS:
        return _SCALARS[hint]
    return _choice(hint) if issubclass(hint, Enum) else nested(hint)


# ---- scalars ---------------------------------------------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise wanted("text", value)
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise wanted("a whole number", value)
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wanted("a number", value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise wanted("a number", value)
    return number


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise wanted("true or false", value)
    return value


def _scaled(factor: int) -> Codec:
    def read(value: Any) -> int:
        scaled = _number(value) * factor
        if math.isinf(scaled):
            raise wanted("a number", value)
        return round(scaled)

    return Codec(read, lambda value: value / factor)


def _time(value: Any) -> int:
    try:
        return time_from_text(_text(value))
    except ValueError as error:
        raise Misfit(str(error)) from None


WHOLE = Codec(_whole, plain=int)
MILLISECONDS = _scaled(_MS)
_SCALARS: dict[Any, Codec] = {
    str: Codec(_text, plain=str),
    int: WHOLE,
    float: Codec(_number),
    bool: Codec(_flag, plain=bool),
    IssueKind: Codec(lambda value: IssueKind(_text(value)), attrgetter("value")),
}
_UNITS = {"_wall_ns": Codec(_time, time_to_text), "_ns": MILLISECONDS, "_mhz": _scaled(_MHZ)}


def _choice(kind: type[Enum]) -> Codec:
    members = {member.value: member for member in kind}

    def read(value: Any) -> Enum:
        member = members.get(_text(value))
        if member is None:
            raise Misfit(f"{value!r} is not a {kind.__name__.lower()}")
        return member

    return Codec(read, attrgetter("_value_"))  # `value` is a Python function: three times as long


def _bounded(codec: Codec, least: int, most: int) -> Codec:
    def read(value: Any) -> Any:
        found = codec.read(value)
        if not least <= found <= most:
            raise Misfit(f"{value!r} is out of range")
        return found

    return Codec(read, codec.write)


def _optional(codec: Codec) -> Codec:
    read, write = codec.read, codec.write
    return Codec(
        lambda value: None if value is None else read(value),
        None if write is None else lambda value: None if value is None else write(value),
        codec.plain,
    )


# ---- lists and objects -----------------------------------------------------------------------


def _items(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        raise wanted("a list", value)
    return value


def many_of(codec: Codec) -> Codec:
    """The codec of a list of what `codec` reads and writes."""
    read_one, write_one = codec.read, codec.write

    def read(value: Any) -> tuple[Any, ...]:
        found: list[Any] = []
        try:
            for item in _items(value):
                found.append(read_one(item))  # noqa: PERF401 - its length is the index of what is wrong
        except Misfit as misfit:
            raise (misfit.below(f"[{len(found)}]") if isinstance(value, list | tuple) else misfit) from None
        return tuple(found)

    return Codec(read, list if write_one is None else lambda values: [write_one(value) for value in values])


def _read_texts(value: Any) -> tuple[str, ...]:
    if not all(isinstance(item, str) for item in _items(value)):
        raise wanted("a list of texts", value)
    return tuple(value)


def _object(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise wanted("an object", value)
    return value


def _read_named(value: Any, read: Callable[[Any], Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, one in _object(value).items():
        try:
            found[str(key)] = read(one)
        except Misfit as misfit:
            raise misfit.below(f".{key}") from None
    return found


_TEXTS = Codec(_read_texts, list)
_NAMED = {kind: Codec(partial(_read_named, read=read), dict) for kind, read in ((int, _whole), (str, _text))}


def _keyed(keys: tuple[str, ...]) -> Codec:
    """A tuple of whole numbers as an object; missing ones are 0."""

    def read(value: Any) -> tuple[int, ...]:
        counts = _read_named(value, _whole)
        return tuple(counts.get(key, 0) for key in keys)

    return Codec(read, lambda counts: dict(zip(keys, counts, strict=True)))


def _row_of(codecs: Sequence[Codec]) -> Codec:
    """A tuple of just these items, as a list."""

    def read(value: Any) -> tuple[Any, ...]:
        if len(_items(value)) != len(codecs):
            raise Misfit(f"{len(codecs)} items are wanted, not {len(value)}")
        return tuple(codec.read(item) for codec, item in zip(codecs, value, strict=True))

    return Codec(read, list)


def _row(names: tuple[str, ...]) -> Codec:
    """A tuple as an object with a field for each item; the items are whole numbers in their field's unit."""
    parts = [(wire_name(name), _UNITS.get(unit_of(name), WHOLE)) for name in names]

    def read(value: Any) -> tuple[Any, ...]:
        document = _object(value)
        return tuple(read_at(codec, document, name) for name, codec in parts)

    def write(row: tuple[Any, ...]) -> dict[str, Any]:
        return {
            name: item if codec.write is None else codec.write(item)
            for (name, codec), item in zip(parts, row, strict=True)
        }

    return Codec(read, write)


def read_at(codec: Codec, document: dict[Any, Any], name: str, absent: Any = MISSING) -> Any:
    """The value of one field, or `absent`. Raises Misfit."""
    try:
        return codec.read(document.get(name, absent))
    except Misfit as misfit:
        raise misfit.below(f".{name}") from None
