"""How a value of one type is written and read: numbers with units, texts, enums, lists, objects."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from operator import attrgetter
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

from loopcanary.model.issues.kind import IssueKind
from loopcanary.wire.misfit import MISSING, Misfit, wanted
from loopcanary.wire.parts import WirePart, unit_of, wire_name
from loopcanary.wire.times import time_from_text, time_to_text

_MS = 1_000_000
_MHZ = 1_000


class Codec(NamedTuple):
    """The two directions of one type."""

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
    if origin is tuple:
        return _TEXTS if arguments[0] is str else many_of(_typed(arguments[0], unit, nested))
    if origin is dict:
        return _COUNTS
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
            raise Misfit(f"{value!r} is no {kind.__name__.lower()}")
        return member

    return Codec(read, attrgetter("_value_"))  # `value` is a Python function: three times as long


def _bounded(codec: Codec, least: int, most: int) -> Codec:
    def read(value: Any) -> Any:
        found = codec.read(value)
        if not least <= found <= most:
            raise Misfit(f"{value!r} is out of bounds")
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


def _read_counts(value: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for key, count in _object(value).items():
        try:
            found[str(key)] = _whole(count)
        except Misfit as misfit:
            raise misfit.below(f".{key}") from None
    return found


_TEXTS = Codec(_read_texts, list)
_COUNTS = Codec(_read_counts, dict)


def _keyed(keys: tuple[str, ...]) -> Codec:
    """A tuple of whole numbers as an object; what a document does not have is 0."""

    def read(value: Any) -> tuple[int, ...]:
        counts = _read_counts(value)
        return tuple(counts.get(key, 0) for key in keys)

    return Codec(read, lambda counts: dict(zip(keys, counts, strict=True)))


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
    """The value of one field; `absent`: what is read where there is none. Raises Misfit."""
    try:
        return codec.read(document.get(name, absent))
    except Misfit as misfit:
        raise misfit.below(f".{name}") from None
