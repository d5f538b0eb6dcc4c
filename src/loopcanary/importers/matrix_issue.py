"""From the content of an issue of Matrix to what was seen: TraceCanary's own are read here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from loopcanary.importers import matrix_fields as fields
from loopcanary.importers.matrix_canaries import found_in
from loopcanary.importers.matrix_rows import methods_of, rows_of
from loopcanary.protocols.imports import Blocked, Seen, SeenFrames, SeenStack, SeenStart

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
_LASTED = "startup_duration"
_CREATED, _BETWEEN = "application_create", "stage_between_app_and_activity"
_FIRST = "first_activity_create"
_STAGES = {
    _CREATED: "the application is created",
    _BETWEEN: "between application and first activity",
    _FIRST: "the first activity",
    "splash_activity_duration": "the splash screen",
}
_REST = "until the app can be used"
_STARTED_BY = {113: "for a broadcast", 114: "for a service"}
"""What the process was started for: messages of ActivityThread.H; else an activity."""
_PERCENT = re.compile(r"(\d{1,3})(?:[.,](\d{1,4}))?%", re.ASCII)
_COUNT_MAX = 1_000_000_000
_COST_MAX_MS = 2_000_000_000
_WHERE = {
    "LAG_IDLE_HANDLER": "It was in an IdleHandler.",
    "LAG_TOUCH": "It was in the handling of a touch.",
    "STARTUP": "It was the start of the app.",
    "SIGNAL_ANR": "The system declared an ANR (SIGQUIT).",
    "SIGNAL_ANR_NATIVE_BACKTRACE": "The system declared an ANR (native back trace).",
}


def seen_in(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[Seen]:
    """What an issue says; nothing where it is about something else."""
    found = list(found_in(content, lines))
    if found:
        yield from found
    elif isinstance(content.get("dropLevel"), dict):
        yield from _frames(content, lines)
    elif _LASTED in content:
        yield from _start(content, lines)
    else:
        yield from _blocked(content, lines)


def _blocked(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[Blocked]:
    detail = fields.text(content, "detail")
    calls, frames = rows_of(fields.text(content, "stack")), fields.frames(fields.text(content, "threadStack"))
    cost = fields.number(content, "cost")
    lasted = cost or max((row.cost_ms for row in calls), default=0) or _LEAST_MS.get(detail)
    is_evil = fields.text(content, "tag") == "Trace_EvilMethod"
    if not lasted or not (calls or frames or detail in _LEAST_MS or is_evil):
        return
    usage = _PERCENT.fullmatch(fields.text(content, "usage"))
    share = None if usage is None else float(f"{usage[1]}.{usage[2] or 0}") / 100
    yield Blocked(
        tool=fields.TOOL,
        lines=lines,
        device=fields.device(content),
        began_wall_ns=fields.began(content, lasted),
        duration_ns=lasted * fields.MS,
        is_least=detail == "ANR" or not (cost or calls),
        ran_ns=None if share is None or not cost else round(share * lasted * fields.MS),
        stacks=(SeenStack(frames=frames),) if frames else (),
        calls=calls,
        methods=methods_of(fields.text(content, "methodMapping").splitlines()),
        memory_free_bytes=_free(content),
        scene=fields.scene(content),
        notes=tuple(_notes(content, detail)),
    )


def _notes(content: Mapping[str, Any], detail: str) -> Iterator[str]:
    if detail in _WHERE:
        yield _WHERE[detail]
    if str(content.get("isProcessForeground")).lower() == "false":
        yield "The app was in the background."
    if key := fields.text(content, "stackKey").strip():
        yield f"Matrix's stackKey is `{key[:100]}`."


def _frames(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenFrames]:
    levels, sums = _by_level(content.get("dropLevel")), _by_level(content.get("dropSum"))
    if not sum(levels):
        return
    fps, refresh = content.get("fps"), fields.number(content, "REFRESH_RATE")
    yield SeenFrames(
        tool=fields.TOOL,
        lines=lines,
        device=fields.device(content),
        began_wall_ns=fields.began(content, 0),
        scene=fields.scene(content),
        drop_level=levels,
        drop_sum=sums,
        fps=float(fps) if isinstance(fps, int | float) and 0 < fps <= 1_000 else None,
        refresh_hz=refresh if refresh and refresh <= 1_000 else None,
    )


def _by_level(some: Any) -> tuple[int, ...]:
    known = some if isinstance(some, dict) else {}
    return tuple(min(fields.number(known, f"DROPPED_{level}") or 0, _COUNT_MAX) for level in _LEVELS)


def _start(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenStart]:
    """Of a cold start its stages: 0.4 gives the length of each, later versions the time from the begin until
    the first activity had the focus. What is left over is until the app was of use."""
    lasted_ms = min(fields.number(content, _LASTED) or 0, _COST_MAX_MS)
    if not lasted_ms:
        return
    costs = {key: fields.number(content, key) or 0 for key in _STAGES}
    if _BETWEEN not in content:
        costs[_FIRST] = max(costs[_FIRST] - costs[_CREATED], 0)
    stages: list[tuple[str, int]] = []
    left_ms = lasted_ms
    for name, cost_ms in (*((_STAGES[key], cost) for key, cost in costs.items()), (_REST, lasted_ms)):
        stage_ms = min(cost_ms, left_ms)
        stages += [(name, stage_ms * fields.MS)] if stage_ms else []
        left_ms -= stage_ms
    yield SeenStart(
        tool=fields.TOOL,
        lines=lines,
        device=fields.device(content),
        began_wall_ns=fields.began(content, lasted_ms),
        scene=fields.scene(content)
        or _STARTED_BY.get(fields.number(content, "application_create_scene") or 0),
        duration_ns=lasted_ms * fields.MS,
        is_warm=fields.is_set(content, "is_warm_start_up"),
        stages=tuple(stages),
    )


def _free(content: Mapping[str, Any]) -> int | None:
    free = fields.number(content, "mem_free")
    return None if free is None else free * 1_024
