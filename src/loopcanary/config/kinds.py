"""Kinds of settings: how a value is read from text, taken from TOML or a keyword, and written as text.

Every kind keeps one promise: `parse(write(value)) == value`. Child processes get their settings that way.
"""

from __future__ import annotations

import os

from loopcanary.model.config import AUTO, ENGINES, NOTIFY_KILLED_NS, NOTIFY_WAYS, OFF, ON, SIGNALS, Config
from loopcanary.whose_exception import ours

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class UnfitValueError(Exception):
    """A value that does not fit its kind. The caller adds where the value stands."""

    def __init__(self, problem: str, next_step: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.next_step = next_step


class SettingKind:
    """A kind of setting: how its values are read and written."""

    def __init__(
        self,
        parse: Callable[[str], object],
        take: Callable[[object], object],
        write: Callable[[Any], str],
        *,
        is_path: bool = False,
    ) -> None:
        """Takes the functions of the kind.

        Args:
            parse: The value of a text, as in an environment variable. Raises UnfitValueError.
            take: The value of a keyword or of a TOML value. Raises UnfitValueError.
            write: The text that `parse` reads back as the same value.
            is_path: A relative value starts at the folder of its source.
        """
        self.parse = parse
        self.take = take
        self.write = write
        self.is_path = is_path


_SHOWN_CHARACTERS = 80


def shown(value: object) -> str:
    """The value for an error: short, and on one line."""
    try:
        text = " ".join(repr(value).split())
    except ours():  # whatever it is, it must not replace our own error
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


_LARGEST = (1 << 63) - 1
"""Times and sizes end up in signed 64-bit words of the native engine."""
_LARGEST_DIGITS = len(str(_LARGEST))

_DURATION_EXAMPLE = 'write a number and a unit in quotes, such as "100ms", "2s" or "3h"'
_DURATION_UNITS = (
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
)
_SIZE_EXAMPLE = 'write a number of bytes, or a size such as "500MB" or "1GiB"'
_SIZE_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1))
_COUNT_EXAMPLE = "write a whole number of 1 or more"
_NAMES_EXAMPLE = 'write names with commas between them, or a list such as ["app", "lib"]'
_RETENTION_EXAMPLE = 'write an age, a size or both, such as "30d, 1GiB"'
_LABELS_EXAMPLE = 'write names with values, such as { stage = "test" } or "stage=test,region=eu"'
_CONSOLE_EXAMPLE = "write auto, on or off"
_ENGINE_EXAMPLE = "write one of " + ", ".join(ENGINES)
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


def duration(least_ns: int, *, may_be_none: bool = False) -> SettingKind:
    """The kind of a duration of at least `least_ns`, or 0 if it `may_be_none`. It takes text such as "100ms"
    or a timedelta, and stores nanoseconds."""

    def bounded(ns: int, value: object) -> int:
        if ns < least_ns and not (may_be_none and ns == 0):
            least = _in_largest_unit(least_ns, _DURATION_UNITS)
            raise UnfitValueError(f"{shown(value)} is too short", f"write {least} or more")
        if ns > _LARGEST:
            raise UnfitValueError(f"{shown(value)} is too long", _DURATION_EXAMPLE)
        return ns

    def parse(text: str) -> int:
        return bounded(_quantity("duration", text, _DURATION_EXAMPLE), text)

    def take(value: object) -> int:
        if isinstance(value, str):
            return parse(value)
        ns = _timedelta_ns(value)
        if ns is None:
            raise UnfitValueError(f"{shown(value)} has no unit", _DURATION_EXAMPLE)
        return bounded(ns, value)

    return SettingKind(parse, take, lambda ns: _in_largest_unit(ns, _DURATION_UNITS))


def _timedelta_ns(value: object) -> int | None:
    from datetime import timedelta  # a caller with a timedelta has paid for the import

    if not isinstance(value, timedelta):
        return None
    return (value.days * 86_400 + value.seconds) * 1_000_000_000 + value.microseconds * 1_000


def _quantity(noun: str, text: str, example: str) -> int:
    from loopcanary.model.units import parse_duration_ns, parse_size_bytes

    parse = parse_size_bytes if noun == "size" else parse_duration_ns
    try:
        return parse(text)
    except (ValueError, OverflowError):
        # OverflowError: hundreds of digits make an infinite float.
        raise UnfitValueError(f"{shown(text)} is not a {noun}", example) from None


def _in_largest_unit(amount: int, units: tuple[tuple[str, int], ...]) -> str:
    unit, factor = next((unit, factor) for unit, factor in units if amount % factor == 0)
    return f"{amount // factor}{unit}"


def _parse_size(text: str) -> int:
    return _size_in_range(_quantity("size", text, _SIZE_EXAMPLE), text)


def _take_size(value: object) -> int:
    if isinstance(value, str):
        return _parse_size(value)
    # A bare number will do here: the setting's name has the unit.
    if isinstance(value, int) and not isinstance(value, bool):
        return _size_in_range(value, value)
    raise UnfitValueError(f"{shown(value)} is not a size", _SIZE_EXAMPLE)


def _size_in_range(size: int, value: object) -> int:
    if not 0 < size <= _LARGEST:
        raise UnfitValueError(f"{shown(value)} is out of range", _SIZE_EXAMPLE)
    return size


def _parse_count(text: str) -> int:
    digits = text.strip()
    # int() also takes underscores and digits of other scripts; a setting is plainer than that.
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _LARGEST_DIGITS:
        raise UnfitValueError(f"{shown(text)} is not a count", _COUNT_EXAMPLE)
    return _take_count(int(digits))


def _take_count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _LARGEST:
        raise UnfitValueError(f"{shown(value)} is not a count", _COUNT_EXAMPLE)
    return value


def _parse_switch(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE and word not in _FALSE:
        raise UnfitValueError(f"{shown(text)} is neither on nor off", "write 1 or 0, true or false")
    return word in _TRUE


def _take_switch(value: object) -> bool:
    if not isinstance(value, bool):
        problem = f"{shown(value)} is neither true nor false"
        raise UnfitValueError(problem, "write true or false, without quotes")
    return value


def _parse_line(text: str) -> str | None:
    text = text.strip()
    if not text.isprintable():
        raise UnfitValueError(f"{shown(text)} is not one line of text", "write it without control characters")
    return text or None


def _take_console(value: object) -> str:
    """`auto`, or a switch in any of its spellings."""
    if isinstance(value, str) and value.strip().lower() == AUTO:
        return AUTO
    try:
        return ON if (_parse_switch(value) if isinstance(value, str) else _take_switch(value)) else OFF
    except UnfitValueError:
        raise UnfitValueError(f"{shown(value)} is not a mode of the console", _CONSOLE_EXAMPLE) from None


def _take_retention(value: object) -> tuple[int, int]:
    """An age, a size, or both; the other keeps its default."""
    if not isinstance(value, str) or not value.strip():
        raise UnfitValueError(f"{shown(value)} is not an age and a size", _RETENTION_EXAMPLE)
    age_ns, size = Config.retention
    for part in value.split(","):
        try:
            age_ns = _AGE.parse(part)  # type: ignore[assignment]
        except UnfitValueError:
            try:
                size = _parse_size(part)
            except UnfitValueError:
                problem = f"{shown(part.strip())} is neither an age of 1s or more nor a size"
                raise UnfitValueError(problem, _RETENTION_EXAMPLE) from None
    return age_ns, size


def _write_retention(value: tuple[int, int]) -> str:
    return f"{_AGE.write(value[0])}, {SIZE.write(value[1])}"


def _take_labels(value: object) -> tuple[tuple[str, str], ...]:
    if isinstance(value, str):
        parts = [part.partition("=") for part in value.split(",") if part.strip()]
        pairs: list[tuple[object, object]] = [(name, text) for name, _, text in parts]
    elif isinstance(value, dict):
        pairs = list(value.items())
    else:
        raise UnfitValueError(f"{shown(value)} is not a table of labels", _LABELS_EXAMPLE)
    return tuple((_label(name, marks=",="), _label(text, marks=",")) for name, text in pairs)


def _label(text: object, *, marks: str) -> str:
    is_sound = isinstance(text, str) and text.strip() and text.isprintable() and not set(marks) & set(text)
    if not is_sound:
        raise UnfitValueError(f"{shown(text)} is not part of a label", _LABELS_EXAMPLE)
    return str(text).strip()


def _take_line(value: object) -> str | None:
    if not isinstance(value, str):
        raise UnfitValueError(f"{shown(value)} is not text", "write it in quotes")
    return _parse_line(value)


def _parse_names(text: str) -> tuple[str, ...]:
    return tuple(_name(name) for name in text.split(",") if name.strip())


def _take_names(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return _parse_names(value)
    if not isinstance(value, (list, tuple)):
        raise UnfitValueError(f"{shown(value)} is not a list of names", _NAMES_EXAMPLE)
    return tuple(_name(name) for name in value)


def _name(name: object) -> str:
    if not isinstance(name, str) or not name.strip() or "," in name or not name.isprintable():
        raise UnfitValueError(f"{shown(name)} is not a name", _NAMES_EXAMPLE)
    return name.strip()


def _path(noun: str) -> SettingKind:
    """A path, `~` for the home."""

    def take(value: object) -> str:
        if not isinstance(value, (str, os.PathLike)) or not str(value).strip() or "\0" in str(value):
            raise UnfitValueError(f"{shown(value)} is not a path", f"write the path of a {noun}")
        path = os.path.expanduser(str(value))
        if path.startswith("~"):
            problem = f"{shown(value)}: that home folder does not exist"
            raise UnfitValueError(problem, "write an absolute path")
        return path

    return SettingKind(take, take, os.path.abspath, is_path=True)


def _take_ways(value: object) -> tuple[str, ...]:
    ways = tuple(name.lower() for name in _take_names(value))
    for way in ways:
        if way not in NOTIFY_WAYS:
            raise UnfitValueError(f"{shown(way)} is not a way to notify", "write " + ", ".join(NOTIFY_WAYS))
    return ways


def _take_signals(value: object) -> tuple[str, ...]:
    names = tuple("SIG" + name.upper().removeprefix("SIG") for name in _take_names(value))
    for name in names:
        if name not in SIGNALS:
            raise UnfitValueError(
                f"{shown(name)} is not a signal that loopcanary records", "write " + ", ".join(SIGNALS)
            )
    return names


def _take_issue_kinds(value: object) -> tuple[str, ...]:
    from loopcanary.registry import KINDS, REGISTRY

    known = [one.name for one in REGISTRY.of(KINDS)]
    names = tuple(name.lower() for name in _take_names(value))
    for name in names:
        if name not in known:
            raise UnfitValueError(f"{shown(name)} is not a kind of issue", "write " + ", ".join(known))
    return names


def _parse_least(text: str) -> int:
    ns = _LEAST_WORDS.get(text.strip().lower())
    return _LEAST_DURATION.parse(text) if ns is None else ns  # type: ignore[return-value]


def _take_least(value: object) -> int:
    return _parse_least(value) if isinstance(value, str) else _LEAST_DURATION.take(value)  # type: ignore[return-value]


def _write_least(ns: int) -> str:
    words = {known_ns: word for word, known_ns in _LEAST_WORDS.items()}
    return words.get(ns) or _LEAST_DURATION.write(ns)


def _take_engine(value: object) -> str:
    name = value.strip().lower() if isinstance(value, str) else value
    if name not in ENGINES:
        raise UnfitValueError(f"{shown(value)} is not an engine", _ENGINE_EXAMPLE)
    return str(name)


_LEAST_WORDS = {"stall": 0, "hang": 1_000_000_000, "anr": 5_000_000_000, "killed": NOTIFY_KILLED_NS}
"""The words of model.stall, which is loaded with the first stall only."""
_LEAST_DURATION = duration(least_ns=1_000_000)
_AGE = duration(least_ns=1_000_000_000)

SIZE = SettingKind(_parse_size, _take_size, lambda size: _in_largest_unit(size, _SIZE_UNITS))
"""An amount of bytes: "500MB", "1GiB", or a plain number."""
COUNT = SettingKind(_parse_count, _take_count, str)
"""A whole number of at least one."""
SWITCH = SettingKind(_parse_switch, _take_switch, lambda value: "1" if value else "0")
LINE = SettingKind(_parse_line, _take_line, str)
"""One line of text; empty means not given."""
NAMES = SettingKind(_parse_names, _take_names, ",".join)
"""Names: a TOML array, a list or tuple, or text with commas."""
PATH = _path("folder")
FILE = _path("file")
WAYS = SettingKind(_take_ways, _take_ways, ",".join)
SIGNAL_NAMES = SettingKind(_take_signals, _take_signals, ",".join)
"""Names of signals, with or without SIG."""
ISSUE_KINDS = SettingKind(_take_issue_kinds, _take_issue_kinds, ",".join)
LEAST = SettingKind(_parse_least, _take_least, _write_least)
"""A duration, or a word for one."""
RETENTION = SettingKind(_take_retention, _take_retention, _write_retention)
"""An age, a size, or both."""
LABELS = SettingKind(_take_labels, _take_labels, lambda labels: ",".join(map("=".join, labels)))
"""Names with values: a TOML table, a dict, or text with commas."""
CONSOLE = SettingKind(_take_console, _take_console, str)
ENGINE = SettingKind(_take_engine, _take_engine, str)
