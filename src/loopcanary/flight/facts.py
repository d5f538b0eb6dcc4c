"""Facts and counters: what the engine says of the session, and what the native side did."""

from __future__ import annotations

import json
import math
import struct
from typing import Any, Final

from loopcanary.flight import format as layout
from loopcanary.flight.header import LARGEST, Section, bounded
from loopcanary.flight.source import ByteSource

_TRIES: Final = 4
_DEPTH: Final = 8


def read_facts(source: ByteSource, section: Section) -> dict[str, Any]:
    """The session's facts; {} where there are none yet, or none that can be read.

    Numbers beyond 64 bits, nesting beyond a few levels and halves of surrogate pairs do not come through:
    others store these facts.
    """
    if not section.count:
        return {}
    for _ in range(_TRIES):
        used = _used(source, section)
        data = source.read(section.offset, min(used, section.stride * section.count))
        if _used(source, section) == used:
            return _parse(data)
    return {}


def read_counters(source: ByteSource, section: Section) -> dict[str, int]:
    """All counters by their C names; 0 for those that the file has no room for."""
    count = min(section.count, len(layout.COUNTERS))
    values = struct.unpack(f"<{count}Q", source.read(section.offset, 8 * count)) if count else ()
    counters = dict.fromkeys(layout.COUNTERS, 0)
    counters.update((name, bounded(value)) for name, value in zip(layout.COUNTERS, values, strict=False))
    return counters


def _used(source: ByteSource, section: Section) -> int:
    return int.from_bytes(source.read(section.used_at, 8), "little")


def _parse(data: bytes) -> dict[str, Any]:
    try:
        facts = _clean(json.loads(data.decode("utf-8", "replace")), _DEPTH)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _clean(value: Any, depth: int) -> Any:
    if isinstance(value, dict | list) and depth == 0:
        return None
    match value:
        case dict():
            return {_clean(key, 0): _clean(item, depth - 1) for key, item in value.items()}
        case list():
            return [_clean(item, depth - 1) for item in value]
        case str():
            value = value.encode("utf-8", "replace").decode("utf-8")
        case float():
            value = value if math.isfinite(value) else None
        case int() if not isinstance(value, bool):
            value = max(-LARGEST, min(value, LARGEST))
    return value
