"""Frames and times as Java writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from loopcanary.protocols.imports import CodePlace

_FRAME = re.compile(r"\s*(?:at )?([^\s()]{3,600})\(([^()]{0,300})\)\s*")
_LINE_MAX = 10_000_000
_STAMP = re.compile(r"\s*(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{3})\s*", re.ASCII)
_A_DAY_NS = 86_400_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def place_of(text: str) -> CodePlace | None:
    """`com.foo.Bar.baz(Bar.java:42)`, with `at ` before it or not; also Matrix's `com.foo.Bar:baz(42)`.
    None: it is no frame."""
    found = _FRAME.fullmatch(text)
    if found is None:
        return None
    name, inside = found.groups()
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
    try:
        year, month, day, hour, minute, second = moment
        local = datetime(year, month, day, hour, minute, second).astimezone()
        return round(local.timestamp()) * 1_000_000_000
    except (ValueError, OverflowError, OSError):
        return None
