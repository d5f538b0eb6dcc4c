"""The content of an issue of Matrix, as what was seen or found.

TraceCanary's issues become a block, frames or a start. Those of IOCanary, SQLiteLint, ResourceCanary with its
off-line analyser, and TraceCanary's changes of the main thread become findings. The keys are those of all
versions (the four `SharePluginInfo` of 0.4.10 to 2.1.0); numbers may be numbers or text. Battery and memory
canary report no issues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from loopcanary.importers.java import place_of
from loopcanary.importers.matrix_calls import methods_of, rows_of
from loopcanary.model import FindingRule, FoundAt
from loopcanary.protocols.imports import (
    Blocked,
    CodePlace,
    Device,
    Seen,
    SeenFinding,
    SeenFrames,
    SeenStack,
    SeenStart,
)

_MS = 1_000_000
_TOOL = "Matrix"
_TIME_MAX = 10_000_000_000_000
_SCENE_MAX = 500


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


def _is_set(content: Mapping[str, Any], key: str) -> bool:
    return str(content.get(key)).lower() == "true"


def _scene(content: Mapping[str, Any]) -> str | None:
    return _text(content, "scene")[:_SCENE_MAX] or None


def _device(content: Mapping[str, Any]) -> Device:
    return Device(process=_text(content, "process")[:200], memory_bytes=_number(content, "mem") or 0)


def _noted(content: Mapping[str, Any], lines: tuple[int, ...], lasted_ms: int) -> dict[str, Any]:
    """What all that is seen has."""
    return {
        "tool": _TOOL,
        "lines": lines,
        "device": _device(content),
        "began_wall_ns": _began(content, lasted_ms),
        "scene": _scene(content),
    }


def _began(content: Mapping[str, Any], lasted_ms: int) -> int | None:
    """`time` is when Matrix wrote the issue, which is after it."""
    at = _number(content, "time")
    return (at - lasted_ms) * _MS if at and lasted_ms < at < _TIME_MAX else None


def _frames_of(stack: str) -> tuple[CodePlace, ...]:
    bare = (line.strip().removeprefix("|*").strip() for line in re.split(r"\\n|\n", stack))
    return tuple(place for line in bare if (place := place_of(line)) is not None)


_LEAST_MS = {
    "LAG": 2_000,
    "LAG_IDLE_HANDLER": 2_000,
    "LAG_TOUCH": 2_000,
    "ANR": 5_000,
    "SIGNAL_ANR": 5_000,
    "SIGNAL_ANR_NATIVE_BACKTRACE": 5_000,
}
"""Issues without a duration are written after this time."""
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
"""Messages of ActivityThread.H that start a process; others start an activity."""
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
    found = list(_found_in(content, lines))
    if found:
        yield from found
    elif isinstance(content.get("dropLevel"), dict):
        yield from _frames(content, lines)
    elif _LASTED in content:
        yield from _start(content, lines)
    else:
        yield from _blocked(content, lines)


def _blocked(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[Blocked]:
    detail = _text(content, "detail")
    calls, frames = rows_of(_text(content, "stack")), _frames_of(_text(content, "threadStack"))
    cost = _number(content, "cost")
    lasted = cost or max((row.cost_ms for row in calls), default=0) or _LEAST_MS.get(detail)
    is_evil = _text(content, "tag") == "Trace_EvilMethod"
    if not lasted or not (calls or frames or detail in _LEAST_MS or is_evil):
        return
    free = _number(content, "mem_free")
    usage = _PERCENT.fullmatch(_text(content, "usage"))
    share = None if usage is None else float(f"{usage[1]}.{usage[2] or 0}") / 100
    yield Blocked(
        **_noted(content, lines, lasted),
        duration_ns=lasted * _MS,
        is_least=detail == "ANR" or not (cost or calls),
        ran_ns=None if share is None or not cost else round(share * lasted * _MS),
        stacks=(SeenStack(frames=frames),) if frames else (),
        calls=calls,
        methods=methods_of(_text(content, "methodMapping").splitlines()),
        memory_free_bytes=None if free is None else free * 1_024,
        notes=tuple(_notes(content, detail)),
    )


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
        **_noted(content, lines, 0),
        drop_level=levels,
        drop_sum=sums,
        fps=float(fps) if isinstance(fps, int | float) and 0 < fps <= 1_000 else None,
        refresh_hz=refresh if refresh and refresh <= 1_000 else None,
    )


def _by_level(some: Any) -> tuple[int, ...]:
    known = some if isinstance(some, dict) else {}
    return tuple(min(_number(known, f"DROPPED_{level}") or 0, _COUNT_MAX) for level in _LEVELS)


def _start(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenStart]:
    """Splits a cold start into stages: 0.4 gives the length of each, later versions the time until the first
    activity had the focus. The rest lasts until the app can be used."""
    lasted_ms = min(_number(content, _LASTED) or 0, _COST_MAX_MS)
    if not lasted_ms:
        return
    costs = {key: _number(content, key) or 0 for key in _STAGES}
    if _BETWEEN not in content:
        costs[_FIRST] = max(costs[_FIRST] - costs[_CREATED], 0)
    stages: list[tuple[str, int]] = []
    left_ms = lasted_ms
    for name, cost_ms in (*((_STAGES[key], cost) for key, cost in costs.items()), (_REST, lasted_ms)):
        stage_ms = min(cost_ms, left_ms)
        stages += [(name, stage_ms * _MS)] if stage_ms else []
        left_ms -= stage_ms
    yield SeenStart(
        tool=_TOOL,
        lines=lines,
        device=_device(content),
        began_wall_ns=_began(content, lasted_ms),
        scene=_scene(content) or _STARTED_BY.get(_number(content, "application_create_scene") or 0),
        duration_ns=lasted_ms * _MS,
        is_warm=_is_set(content, "is_warm_start_up"),
        stages=tuple(stages),
    )


_IO = {
    1: FindingRule.MAIN_THREAD_IO,
    2: FindingRule.SMALL_BUFFER,
    3: FindingRule.REPEATED_READ,
    4: FindingRule.NOT_CLOSED,
}
_SQL = {
    1: FindingRule.TABLE_SCAN,
    2: FindingRule.TEMPORARY_TREE,
    3: FindingRule.LARGER_INDEX,
    4: FindingRule.AUTO_INCREMENT,
    5: FindingRule.SELECT_ALL,
    6: FindingRule.WITHOUT_ROWID,
    7: FindingRule.PREPARED_STATEMENT,
    8: FindingRule.REDUNDANT_INDEX,
}
_WHY_SLOW = {1: "one operation took more than 13 ms", 2: "operations without a pause took more than 500 ms"}
"""Bits of `repeat` of I/O on the main thread: main_thread_detector.cc, with its limits as they are set."""
_LEAKED = "Leak Reference:"
_NO_DETAIL = ("", "no dump")
_IO_KEYS = {"op", "buffer", "opSize"}
_SQL_KEYS = {"dbPath", "level"}
_LEAK_KEYS = {"ref_key", "resultZipPath", "dump_mode", "leak_detail"}
_TEXT_MAX = 500
_SQL_MAX = 4_000
_CHAIN_MAX = 100
_BITMAPS_MAX = 1_000


def _found_in(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenFinding]:
    tag, keys = content.get("tag"), content.keys()
    if tag == "io" or keys >= _IO_KEYS:
        yield from _io(content, lines)
    elif tag == "SQLiteLint" or keys >= _SQL_KEYS:
        yield from _sql(content, lines)
    elif tag == "memory" or keys & _LEAK_KEYS:
        yield from _leak(content, lines)
    elif isinstance(content.get("activityLeakResult"), dict) or "duplicatedBitmapResult" in keys:
        yield from _analysed(content, lines)
    elif _text(content, "detail") in ("PRIORITY_MODIFIED", "TIMERSLACK_MODIFIED"):
        yield from _changed(content, lines)


def _io(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenFinding]:
    path, frames = _text(content, "path"), _frames_of(_text(content, "stack"))
    if not path and not frames:
        return
    kind = _number(content, "type")
    rule = _IO.get(kind or 0, FindingRule.OTHER_IO if path or kind else FindingRule.NOT_CLOSED)
    repeat = _number(content, "repeat") or 0
    is_main = rule is FindingRule.MAIN_THREAD_IO
    yield _seen(
        content,
        lines,
        rule,
        FoundAt(
            file=path[:_TEXT_MAX],
            said=tuple(words for bit, words in _WHY_SLOW.items() if is_main and repeat & bit),
        ),
        thread=_text(content, "thread"),
        cost="cost",
        operations=_number(content, "op") or 0,
        repeats=0 if is_main else repeat,
        size_bytes=_number(content, "size") or 0,
        buffer_bytes=_number(content, "buffer") or 0,
        moved_bytes=_number(content, "opSize") or 0,
    )


def _sql(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenFinding]:
    sql, table = _text(content, "sql").strip(), _text(content, "table").strip()
    if not sql and not table:
        return
    is_main = _is_set(content, "isInMainThread")
    said = [" ".join(_text(content, key).split()) for key in ("desc", "detail")]
    yield _seen(
        content,
        lines,
        _SQL.get(_number(content, "type") or 0, FindingRule.OTHER_SQL),
        FoundAt(
            database=_text(content, "dbPath")[:_TEXT_MAX],
            table=table[:_TEXT_MAX],
            sql=sql[:_SQL_MAX],
            said=tuple(one[:_TEXT_MAX] for one in said if one),
        ),
        thread="main" if is_main or "isInMainThread" not in content else "another thread",
        cost="sqlTimeCost",
        advice=" ".join(_text(content, "advice").split())[:_TEXT_MAX],
    )


def _leak(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenFinding]:
    activity = _text(content, "activity").strip()
    if not activity:
        return
    detail = _text(content, "leak_detail").strip()
    is_chain = detail.startswith(_LEAKED)
    chain = [one.strip() for one in detail.removeprefix(_LEAKED).split(";")] if is_chain else []
    failed = f"its analysis failed: {detail[:_TEXT_MAX]}"
    yield _seen(
        content,
        lines,
        FindingRule.ACTIVITY_LEAK,
        FoundAt(
            owner=activity[:_TEXT_MAX],
            file=(_text(content, "hprof_path") or _text(content, "resultZipPath"))[:_TEXT_MAX],
            chain=_chain(chain),
            said=() if is_chain or detail in _NO_DETAIL else (failed,),
        ),
    )


def _analysed(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenFinding]:
    """Reads `result.json` of the off-line analyser."""
    leak, bitmaps = content.get("activityLeakResult"), content.get("duplicatedBitmapResult")
    if isinstance(leak, dict) and _is_set(leak, "leakFound"):
        at = FoundAt(owner=_text(leak, "className")[:_TEXT_MAX], chain=_chain(leak.get("referenceChain")))
        if at.owner:
            yield _seen(content, lines, FindingRule.ACTIVITY_LEAK, at)
    entries = bitmaps.get("duplicatedBitmapEntries") if isinstance(bitmaps, dict) else None
    for entry in entries[:_BITMAPS_MAX] if isinstance(entries, list) else ():
        chains = entry.get("referenceChains") if isinstance(entry, dict) else None
        if not isinstance(chains, list) or not chains:
            continue
        width, height = _number(entry, "width"), _number(entry, "height")
        yield _seen(
            content,
            lines,
            FindingRule.DUPLICATED_BITMAP,
            FoundAt(
                owner=_text(entry, "bufferHash")[:_TEXT_MAX],
                chain=_chain(chains[0]),
                said=() if width is None or height is None else (f"{width:,} x {height:,} pixels",),
            ),
            operations=len(chains),
            size_bytes=_number(entry, "bufferSize") or 0,
        )


def _chain(some: object) -> tuple[str, ...]:
    listed = some if isinstance(some, list) else []
    return tuple(one[:_TEXT_MAX] for one in listed[:_CHAIN_MAX] if isinstance(one, str) and one)


def _changed(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenFinding]:
    """Reads a change of the main thread's priority or timer slack, with the stack that made it."""
    slack = _number(content, "processTimerSlack")
    if _text(content, "detail") == "TIMERSLACK_MODIFIED":
        said = f"its timers may be {slack:,} ns late" if slack is not None else ""
        rule = FindingRule.TIMER_SLACK_CHANGED
    else:
        nice = content.get("processPriority")
        is_nice = isinstance(nice, int) and not isinstance(nice, bool) and abs(nice) < 1_000
        said = f"its nice value became {nice}" if is_nice else ""
        rule = FindingRule.PRIORITY_CHANGED
    yield _seen(content, lines, rule, FoundAt(said=(said,) if said else ()), stack="threadStack")


def _seen(
    content: Mapping[str, Any],
    lines: tuple[int, ...],
    rule: FindingRule,
    at: FoundAt,
    *,
    thread: str = "",
    cost: str = "",
    stack: str = "stack",
    advice: str = "",
    **figures: int,
) -> SeenFinding:
    """`cost` and `stack` are keys of the content."""
    cost_ms = min(_number(content, cost) or 0, _COST_MAX_MS)
    return SeenFinding(
        tool=_TOOL,
        lines=lines,
        device=_device(content),
        began_wall_ns=_began(content, cost_ms) or _began({"time": content.get("createTime")}, cost_ms),
        scene=_scene(content),
        rule=rule,
        at=at,
        thread=thread[:_TEXT_MAX] or "main",
        duration_ns=cost_ms * _MS,
        frames=_frames_of(_text(content, stack)),
        figures=figures,
        advice=advice or None,
    )
