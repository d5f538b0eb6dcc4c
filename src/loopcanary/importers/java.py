"""Frames and times as Java writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from loopcanary.protocols.imports import CodePlace

_FRAME = re.compile(r"\s*(?:at )?([^\s()]{3,600})\(([^()]{0,300})\)\s*")
_SPACED = re.compile(r"\s*at ([^\s()]{3,600}) \(([^()]{0,300})\)\s*")
_RETRACED = re.compile(
    r"\s*(?:at )?((?:[\w$]{1,200}\.){2,40})[\w$\[\]]{1,200} "
    r"([\w$<>]{1,200})\([^()]{0,300}\)\(([^()]{0,300})\)\s*"
)
_LINE_MAX = 10_000_000
CACHED_MAX = 1 << 14
CACHED_LENGTH_MAX = 300
"""Of a line that is remembered: the cache has tens of MiB at most, whatever the lines are."""
_STAMP = re.compile(r"\s*(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{3})\s*", re.ASCII)
_S = 1_000_000_000
_A_DAY_NS = 86_400 * _S
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(CACHED_MAX)
def _known_place(text: str) -> CodePlace | None:
    return read_place(text)


def place_of(text: str) -> CodePlace | None:
    """As `read_place`; what is read of a short line is remembered: thousands of logs of one app have the same
    frames."""
    return _known_place(text) if "(" in text and len(text) <= CACHED_LENGTH_MAX else read_place(text)


def read_place(text: str) -> CodePlace | None:
    """`com.foo.Bar.baz(Bar.java:42)`, with `at ` before it or not; also Matrix's `com.foo.Bar:baz(42)`, what
    R8's retrace writes with types: `com.foo.Bar.void baz(int)(Bar.java:42)`, and Google Play's pages with a
    space before the file. None: it is no frame."""
    if "(" not in text:
        return None
    if (found := _FRAME.fullmatch(text) or _SPACED.fullmatch(text)) is not None:
        name, inside = found.groups()
    elif (found := _RETRACED.fullmatch(text)) is not None:
        name, inside = f"{_class_in(found[1])}.{found[2]}", found[3]
    else:
        return None
    mark = ":" if ":" in name else "."
    owner, _, method = name.rpartition(mark)
    if not owner or not method or ("." not in name and mark == "."):
        return None
    file, _, number = inside.rpartition(":") if ":" in inside else ("", "", inside)
    line = int(number) if number.isascii() and number.isdecimal() and len(number) <= 8 else 0
    if not file and not number.lstrip("-").isdecimal():
        file = inside
    known = file if "." in file and " " not in file and "/" not in file else ""
    return CodePlace(owner.rpartition("/")[2], method, known, min(line, _LINE_MAX))


def _class_in(names: str) -> str:
    """Of a class and the package of the type that comes after it: up to the first name with a capital."""
    parts = names.rstrip(".").split(".")
    at = next((at for at, part in enumerate(parts, 1) if part[:1].isupper()), len(parts))
    return ".".join(parts[:at])


def wall_ns(text: str, near_wall_ns: int) -> int | None:
    """The time of `MM-dd HH:mm:ss.SSS`, which has no year and no zone: the last one that is not more than a
    day after `near_wall_ns`, in this machine's zone. None: it is no time."""
    found = _STAMP.fullmatch(text)
    if found is None:
        return None
    month, day, hour, minute, second, ms = map(int, found.groups())
    year = (_EPOCH + timedelta(microseconds=near_wall_ns // 1_000)).year
    for one in (year + 1, *range(year, year - 9, -1)):  # 29 February is in every eighth year at the latest
        moment = local_ns(one, month, day, hour, minute, second)
        if moment is not None and moment <= near_wall_ns + _A_DAY_NS:
            return moment + ms * 1_000_000
    return None


def is_stamp(text: str) -> bool:
    """Whether it is `MM-dd HH:mm:ss.SSS`."""
    return _STAMP.fullmatch(text) is not None


def local_ns(*moment: int) -> int | None:
    """Of year, month, day, hour, minute, second in this machine's zone; None: there is no such time."""
    *minute, second = moment
    minute_ns = _minute_ns(*minute)
    return None if minute_ns is None or second > 59 else minute_ns + second * _S


@lru_cache(CACHED_MAX)
def _minute_ns(*minute: int) -> int | None:
    """The moments of a log are in few minutes, and a zone takes long to ask."""
    try:
        year, month, day, hour, past = minute
        return round(datetime(year, month, day, hour, past).astimezone().timestamp()) * _S
    except (ValueError, OverflowError, OSError):
        return None
