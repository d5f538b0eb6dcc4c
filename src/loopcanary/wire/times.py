"""Times as RFC 3339 text in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_S = 1_000_000_000
_EARLIEST_WALL_NS = -62_135_596_800 * _S
_LATEST_WALL_NS = 253_402_300_799 * _S + _S - 1
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def time_to_text(wall_ns: int) -> str:
    """RFC 3339 in UTC with nanoseconds; times outside the years 1 to 9999 become the nearest inside."""
    seconds, ns = divmod(min(max(wall_ns, _EARLIEST_WALL_NS), _LATEST_WALL_NS), _S)
    # isoformat pads the year to four digits, which strftime does not do everywhere.
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}.{ns:09}Z"


def time_from_text(text: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 time with any offset.

    Raises:
        ValueError: the text is no such time.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no RFC 3339 time, such as 2026-01-31T12:00:00Z")
    offset = "+00:00" if match[4] in "Zz" else match[4]
    moment = datetime.fromisoformat(f"{match[1]}T{match[2]}{offset}")
    return (moment - _EPOCH) // timedelta(seconds=1) * _S + int((match[3] or "").ljust(9, "0"))
