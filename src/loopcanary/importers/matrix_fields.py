"""Fields of the content of Matrix's issues: keys of all versions, numbers as numbers or text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loopcanary.importers.java import place_of
from loopcanary.protocols.imports import CodePlace, Device

MS = 1_000_000
TOOL = "Matrix"
_TIME_MAX = 10_000_000_000_000
_SCENE_MAX = 500


def text(content: Mapping[str, Any], key: str) -> str:
    value = content.get(key)
    return value if isinstance(value, str) else ""


def number(content: Mapping[str, Any], key: str) -> int | None:
    value = content.get(key)
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal() and len(value) < 16:
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15:
        return int(value)
    return None


def is_set(content: Mapping[str, Any], key: str) -> bool:
    return str(content.get(key)).lower() == "true"


def scene(content: Mapping[str, Any]) -> str | None:
    return text(content, "scene")[:_SCENE_MAX] or None


def device(content: Mapping[str, Any]) -> Device:
    return Device(process=text(content, "process")[:200], memory_bytes=number(content, "mem") or 0)


def began(content: Mapping[str, Any], lasted_ms: int) -> int | None:
    """`time` is when it was written, which is after it."""
    at = number(content, "time")
    return (at - lasted_ms) * MS if at and lasted_ms < at < _TIME_MAX else None


def frames(stack: str) -> tuple[CodePlace, ...]:
    """The frames of a stack, a line each."""
    bare = (line.strip().removeprefix("|*").strip() for line in re.split(r"\\n|\n", stack))
    return tuple(place for line in bare if (place := place_of(line)) is not None)
