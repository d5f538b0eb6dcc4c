"""Issues of Matrix's other canaries, from their content to what was found: IOCanary, SQLiteLint,
ResourceCanary with its off-line analyser, and the changes of the main thread that TraceCanary sees.

Keys as in the four `SharePluginInfo` of 0.4.10 to 2.1.0. Battery and memory canary report no issues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loopcanary.importers import matrix_fields as fields
from loopcanary.model import FindingRule, FoundAt
from loopcanary.protocols.imports import SeenFinding

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
_COST_MAX_MS = 2_000_000_000
_BITMAPS_MAX = 1_000


def found_in(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenFinding]:
    """What an issue says; nothing where it is of none of these canaries."""
    tag, keys = content.get("tag"), content.keys()
    if tag == "io" or keys >= _IO_KEYS:
        yield from _io(content, lines)
    elif tag == "SQLiteLint" or keys >= _SQL_KEYS:
        yield from _sql(content, lines)
    elif tag == "memory" or keys & _LEAK_KEYS:
        yield from _leak(content, lines)
    elif isinstance(content.get("activityLeakResult"), dict) or "duplicatedBitmapResult" in keys:
        yield from _analysed(content, lines)
    elif fields.text(content, "detail") in ("PRIORITY_MODIFIED", "TIMERSLACK_MODIFIED"):
        yield from _changed(content, lines)


def _io(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenFinding]:
    path, frames = fields.text(content, "path"), fields.frames(fields.text(content, "stack"))
    if not path and not frames:
        return
    kind = fields.number(content, "type")
    rule = _IO.get(kind or 0, FindingRule.OTHER_IO if path or kind else FindingRule.NOT_CLOSED)
    repeat = fields.number(content, "repeat") or 0
    is_main = rule is FindingRule.MAIN_THREAD_IO
    yield _seen(
        content,
        lines,
        rule,
        FoundAt(
            file=path[:_TEXT_MAX],
            said=tuple(words for bit, words in _WHY_SLOW.items() if is_main and repeat & bit),
        ),
        thread=fields.text(content, "thread"),
        cost="cost",
        operations=fields.number(content, "op") or 0,
        repeats=0 if is_main else repeat,
        size_bytes=fields.number(content, "size") or 0,
        buffer_bytes=fields.number(content, "buffer") or 0,
        moved_bytes=fields.number(content, "opSize") or 0,
    )


def _sql(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenFinding]:
    sql, table = fields.text(content, "sql").strip(), fields.text(content, "table").strip()
    if not sql and not table:
        return
    is_main = fields.is_set(content, "isInMainThread")
    said = [" ".join(fields.text(content, key).split()) for key in ("desc", "detail")]
    yield _seen(
        content,
        lines,
        _SQL.get(fields.number(content, "type") or 0, FindingRule.OTHER_SQL),
        FoundAt(
            database=fields.text(content, "dbPath")[:_TEXT_MAX],
            table=table[:_TEXT_MAX],
            sql=sql[:_SQL_MAX],
            said=tuple(one[:_TEXT_MAX] for one in said if one),
        ),
        thread="main" if is_main or "isInMainThread" not in content else "another thread",
        cost="sqlTimeCost",
        advice=" ".join(fields.text(content, "advice").split())[:_TEXT_MAX],
    )


def _leak(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenFinding]:
    activity = fields.text(content, "activity").strip()
    if not activity:
        return
    detail = fields.text(content, "leak_detail").strip()
    is_chain = detail.startswith(_LEAKED)
    chain = [one.strip() for one in detail.removeprefix(_LEAKED).split(";")] if is_chain else []
    failed = f"its analysis failed: {detail[:_TEXT_MAX]}"
    yield _seen(
        content,
        lines,
        FindingRule.ACTIVITY_LEAK,
        FoundAt(
            owner=activity[:_TEXT_MAX],
            file=(fields.text(content, "hprof_path") or fields.text(content, "resultZipPath"))[:_TEXT_MAX],
            chain=_chain(chain),
            said=() if is_chain or detail in _NO_DETAIL else (failed,),
        ),
    )


def _analysed(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenFinding]:
    """`result.json` of the off-line analyser."""
    leak, bitmaps = content.get("activityLeakResult"), content.get("duplicatedBitmapResult")
    if isinstance(leak, dict) and fields.is_set(leak, "leakFound"):
        at = FoundAt(
            owner=fields.text(leak, "className")[:_TEXT_MAX], chain=_chain(leak.get("referenceChain"))
        )
        if at.owner:
            yield _seen(content, lines, FindingRule.ACTIVITY_LEAK, at)
    entries = bitmaps.get("duplicatedBitmapEntries") if isinstance(bitmaps, dict) else None
    for entry in entries[:_BITMAPS_MAX] if isinstance(entries, list) else ():
        chains = entry.get("referenceChains") if isinstance(entry, dict) else None
        if not isinstance(chains, list) or not chains:
            continue
        width, height = fields.number(entry, "width"), fields.number(entry, "height")
        yield _seen(
            content,
            lines,
            FindingRule.DUPLICATED_BITMAP,
            FoundAt(
                owner=fields.text(entry, "bufferHash")[:_TEXT_MAX],
                chain=_chain(chains[0]),
                said=() if width is None or height is None else (f"{width:,} x {height:,} pixels",),
            ),
            operations=len(chains),
            size_bytes=fields.number(entry, "bufferSize") or 0,
        )


def _chain(some: object) -> tuple[str, ...]:
    listed = some if isinstance(some, list) else []
    return tuple(one[:_TEXT_MAX] for one in listed[:_CHAIN_MAX] if isinstance(one, str) and one)


def _changed(content: Mapping[str, Any], lines: tuple[int, ...]) -> Iterator[SeenFinding]:
    """Of the main thread's priority or timer slack, with the stack that made it."""
    slack = fields.number(content, "processTimerSlack")
    if fields.text(content, "detail") == "TIMERSLACK_MODIFIED":
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
    """`cost`, `stack`: the keys that have them."""
    cost_ms = min(fields.number(content, cost) or 0, _COST_MAX_MS)
    return SeenFinding(
        tool=fields.TOOL,
        lines=lines,
        device=fields.device(content),
        began_wall_ns=fields.began(content, cost_ms)
        or fields.began({"time": content.get("createTime")}, cost_ms),
        scene=fields.scene(content),
        rule=rule,
        at=at,
        thread=thread[:_TEXT_MAX] or "main",
        duration_ns=cost_ms * fields.MS,
        frames=fields.frames(fields.text(content, stack)),
        figures=figures,
        advice=advice or None,
    )
