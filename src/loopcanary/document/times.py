"""Wall times for people, in their own time zone."""

from __future__ import annotations

from datetime import UTC, datetime

_S = 1_000_000_000


def moment(wall_ns: int) -> str:
    """`2026-11-21 05:12:40` in local time."""
    return _local(wall_ns).strftime("%Y-%m-%d %H:%M:%S")


def exactly(wall_ns: int) -> str:
    """`05:12:40.123` in local time."""
    return f"{_local(wall_ns):%H:%M:%S}.{wall_ns % _S // 1_000_000:03}"


def age(wall_ns: int, now_wall_ns: int) -> str:
    """How long ago, in one unit: `40 s`, `3 h`, `12 d`; `now` for less than 10 s and for the future."""
    seconds = (now_wall_ns - wall_ns) // _S
    for unit, length, least in (("d", 86_400, 172_800), ("h", 3_600, 7_200), ("min", 60, 120), ("s", 1, 10)):
        if seconds >= least:
            return f"{seconds // length} {unit}"
    return "now"


def span(first_wall_ns: int, last_wall_ns: int) -> str:
    """Two moments, the second without its date if that is the same."""
    first, last = moment(first_wall_ns), moment(last_wall_ns)
    if first == last:
        return first
    return f"{first} to {last[11:] if last[:10] == first[:10] else last}"


def _local(wall_ns: int) -> datetime:
    try:
        return datetime.fromtimestamp(wall_ns // _S, UTC).astimezone()
    except (OverflowError, ValueError, OSError):
        # A clock that was far off, or a file that lies.
        return datetime.fromtimestamp(0, UTC)
