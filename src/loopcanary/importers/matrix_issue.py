"""From the content of an issue of Matrix's TraceCanary to what was seen: keys of all versions, numbers as
numbers or text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from loopcanary.importers.java import place_of
from loopcanary.importers.matrix_rows import methods_of, rows_of
from loopcanary.protocols.imports import Blocked, Device, SeenFrames, SeenStack

_MS = 1_000_000
_LEAST_MS = {
    "LAG": 2_000,
    "LAG_IDLE_HANDLER": 2_000,
    "LAG_TOUCH": 2_000,
    "ANR": 5_000,
    "SIGNAL_ANR": 5_000,
    "SIGNAL_ANR_NATIVE_BACKTRACE": 5_000,
}
"""After how long such an issue is written, which does not say how long it lasted."""
_LEVELS = ("BEST", "NORMAL", "MIDDLE", "HIGH", "FROZEN")
_PERCENT = re.compile(r"(\d{1,3})(?:[.,](\d{1,4}))?%", re.ASCII)
_COUNT_MAX = 1_000_000_000
_TIME_MAX = 10_000_000_000_000
_WHERE = {
    "LAG_IDLE_HANDLER": "It was in an IdleHandler.",
    "LAG_TOUCH": "It was in the handling of a touch.",
    "STARTUP": "It was the start of the app.",
    "SIGNAL_ANR": "The system declared an ANR (SIGQUIT).",
    "SIGNAL_ANR_NATIVE_BACKTRACE": "The system declared an ANR (native back trace).",
}


def seen_in(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[Blocked | SeenFrames]:
    """What an issue says; nothing where it is about something else."""
    if isinstance(content.get("dropLevel"), dict):
        yield from _frames(content, lines)
        return
    detail = _text(content, "detail")
    calls, stack = rows_of(_text(content, "stack")), _text(content, "threadStack")
    frames = tuple(
        place for line in re.split(r"\\n|\n", stack) if (place := place_of(_bare(line))) is not None
    )
    cost = _number(content, "cost")
    lasted = cost or max((row.cost_ms for row in calls), default=0) or _LEAST_MS.get(detail)
    if not lasted or not (calls or frames or detail in _LEAST_MS):
        return
    usage = _PERCENT.fullmatch(_text(content, "usage"))
    share = None if usage is None else float(f"{usage[1]}.{usage[2] or 0}") / 100
    yield Blocked(
        tool="Matrix",
        lines=lines,
        device=_device(content),
        began_wall_ns=_began(content, lasted),
        duration_ns=lasted * _MS,
        is_least=detail == "ANR" or not (cost or calls),
        ran_ns=None if share is None or not cost else round(share * lasted * _MS),
        stacks=(SeenStack(frames=frames),) if frames else (),
        calls=calls,
        methods=methods_of(_text(content, "methodMapping").splitlines()),
        memory_free_bytes=_free(content),
        scene=_text(content, "scene")[:500] or None,
        notes=tuple(_notes(content, detail)),
    )


def _bare(line: str) -> str:
    return line.strip().removeprefix("|*").strip()


def _notes(content: Mapping[str, Any], detail: str) -> Iterator[str]:
    if detail in _WHERE:
        yield _WHERE[detail]
    if str(content.get("isProcessForeground")).lower() == "false":
        yield "The app was in the background."
    if key := _text(content, "stackKey").strip():
        yield f"Matrix's stackKey is `{key[:100]}`."


def _frames(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenFrames]:
    levels, sums = _by_level(content.get("dropLevel")), _by_level(content.get("dropSum"))
    if not sum(levels):
        return
    fps, refresh = content.get("fps"), _number(content, "REFRESH_RATE")
    yield SeenFrames(
        tool="Matrix",
        lines=lines,
        device=_device(content),
        began_wall_ns=_began(content, 0),
        scene=_text(content, "scene")[:500] or None,
        drop_level=levels,
        drop_sum=sums,
        fps=float(fps) if isinstance(fps, int | float) and 0 < fps <= 1_000 else None,
        refresh_hz=refresh if refresh and refresh <= 1_000 else None,
    )


def _by_level(some: Any) -> tuple[int, ...]:
    known = some if isinstance(some, dict) else {}
    return tuple(min(_number(known, f"DROPPED_{level}") or 0, _COUNT_MAX) for level in _LEVELS)


def _device(content: Mapping[str, Any]) -> Device:
    return Device(process=_text(content, "process")[:200], memory_bytes=_number(content, "mem") or 0)


def _free(content: Mapping[str, Any]) -> int | None:
    free = _number(content, "mem_free")
    return None if free is None else free * 1_024


def _began(content: Mapping[str, Any], lasted_ms: int) -> int | None:
    """`time` is when it was written, which is after it."""
    at = _number(content, "time")
    return (at - lasted_ms) * _MS if at and lasted_ms < at < _TIME_MAX else None


def _text(content: Mapping[str, Any], key: str) -> str:
    value = content.get(key)
    return value if isinstance(value, str) else ""


def _number(content: Mapping[str, Any], key: str) -> int | None:
    value = content.get(key)
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal() and len(value) < 16:
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15:
        return int(value)
    return None
