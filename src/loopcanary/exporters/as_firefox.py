"""The processed format of the Firefox Profiler, version 48.

Types: github.com/firefox-devtools/profiler, src/types/profile.js (and profile.ts since), with
docs-developer/CHANGELOG-formats.md for the versions; the profiler upgrades older versions itself. Each
watched thread has its samples, weighted in milliseconds, and markers for its stalls, what it did in them,
garbage collections and the turns before. Its traced calls are a thread of their own, with a marker for each
row. Other threads have the stacks that they had when a stall became a hang.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import chain, groupby
from typing import IO, Any, Final

from loopcanary.exporters import Exported, Format
from loopcanary.exporters.columns import Columns, Spool
from loopcanary.exporters.exact_calls import NAME, exact_calls, own_times
from loopcanary.exporters.spans import stretches, timeline_of
from loopcanary.exporters.texts import (
    activity_words,
    earlier_name,
    encoded,
    facts_of,
    frame_name,
    name_of,
    whole,
)
from loopcanary.model import EarlierWork, StackFrame, Stall, ThreadView
from loopcanary.model.timeline import WorkKind

CATEGORIES: Final = [
    {"name": "Other", "color": "grey", "subcategories": ["Other"]},
    {"name": "Own code", "color": "orange", "subcategories": ["Other"]},
    {"name": "Libraries", "color": "lightblue", "subcategories": ["Other"]},
]
_OTHER, _OWN, _LIBRARIES = 0, 1, 2
_INTERVAL = 1
"""The phase of a marker with a begin and an end."""


class ThreadTables:
    """The tables of one thread: samples, markers, and the stacks, frames, functions and strings in them."""

    def __init__(self, spool: Spool) -> None:
        self._strings: dict[str, int] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._samples = Columns(spool, "stack", "time", "weight")
        self._markers = Columns(spool, "data", "name", "startTime", "endTime", "phase", "category")
        self._stacks = Columns(spool, "frame", "prefix", "category", "subcategory")
        self._frames = Columns(
            spool,
            *("address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol", "innerWindowID"),
            *("implementation", "line", "column"),
        )
        self._functions = Columns(
            spool, *("isJS", "relevantForJS", "name", "resource", "fileName", "lineNumber", "columnNumber")
        )

    def sample(self, stack: int | None, at_ms: float, weight: float) -> None:
        self._samples.add(stack, at_ms, weight)

    def marker(self, name: str, begin_ms: float, end_ms: float, data: dict[str, Any]) -> None:
        self._markers.add(data, self._string(name), begin_ms, end_ms, _INTERVAL, _OTHER)

    def stack(self, frames: tuple[StackFrame, ...]) -> int | None:
        """The number of a stack, outermost frame first; None for an empty one."""
        prefix: int | None = None
        for frame in frames:
            category = _OWN if frame.in_app else _LIBRARIES
            number, is_new = self._number("stack", prefix, self._frame(frame, category))
            if is_new:
                self._stacks.add(self._frame(frame, category), prefix, category, 0)
            prefix = number
        return prefix

    def _frame(self, frame: StackFrame, category: int) -> int:
        function = self._function(frame)
        number, is_new = self._number("frame", function, frame.line, category)
        if is_new:
            line = frame.line if frame.line > 0 else None
            self._frames.add(-1, 0, category, 0, function, None, None, None, line, None)
        return number

    def _function(self, frame: StackFrame) -> int:
        name, file = self._string(frame_name(frame)), self._string(whole(frame.file)) if frame.file else None
        number, is_new = self._number("function", name, file)
        if is_new:
            self._functions.add(False, False, name, -1, file, None, None)
        return number

    def _number(self, *key: Any) -> tuple[int, bool]:
        """The row's number in its table, and whether it is new."""
        known = self._numbers.get(key)
        if known is not None:
            return known, False
        count = self._numbers.get((key[0],), 0)
        self._numbers[(key[0],)] = count + 1
        self._numbers[key] = count
        return count, True

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def copy_to(self, out: IO[bytes], facts: dict[str, Any], weight_type: str) -> None:
        """Writes the thread as an object that begins with these facts."""
        out.write(encoded(facts)[:-1].encode("ascii"))
        for name, columns, more in (
            ("samples", self._samples, {"weightType": weight_type}),
            ("markers", self._markers, {}),
            ("stackTable", self._stacks, {}),
            ("frameTable", self._frames, {}),
            ("funcTable", self._functions, {}),
        ):
            out.write(f',"{name}":'.encode("ascii"))
            columns.copy_to(out, **more)
        for name, empty in (
            ("resourceTable", ("lib", "name", "host", "type")),
            ("nativeSymbols", ("libIndex", "address", "name", "functionSize")),
        ):
            table: dict[str, Any] = {**{column: [] for column in empty}, "length": 0}
            out.write(f',"{name}":{encoded(table)}'.encode("ascii"))
        out.write(b',"stringArray":[')
        for number, text in enumerate(self._strings):
            out.write((b"," if number else b"") + encoded(text).encode("ascii"))
        out.write(b"]}")


FORMAT_VERSION = 48
_GECKO_VERSION = 29
"""The version of the format that Firefox itself writes; the profiler wants one."""
_SAMPLES_A_STRETCH_MAX = 64
_OTHER_THREADS_MAX = 256
_MORE_THREADS = "more threads"


def write(exported: Exported, out: IO[bytes]) -> None:
    out.write(f'{{"meta":{encoded(_meta(exported))},"libs":[],"pages":[],"threads":['.encode("ascii"))
    numbers = _ThreadNumbers()
    for session, stalls in groupby(exported.stalls, key=lambda stall: stall.session):
        with closing(Spool()) as spool:
            process = _ProcessThreads(session, exported, numbers, spool)
            for _, of_thread in groupby(stalls, key=lambda stall: (stall.thread, stall.loop)):
                process.watched(of_thread, out)
            process.write_others(out)
    out.write(b"]}\n")


def _meta(exported: Exported) -> dict[str, Any]:
    return {
        "interval": 10,
        "startTime": exported.origin_wall_ns / 1_000_000,
        "processType": 0,
        "product": "loopcanary",
        "stackwalk": 0,
        "version": _GECKO_VERSION,
        "preprocessedProfileVersion": FORMAT_VERSION,
        "symbolicated": True,
        "importedFrom": "loopcanary",
        "categories": CATEGORIES,
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
        "extensions": {"id": [], "name": [], "baseURL": [], "length": 0},
        "usesOnlyOneStackType": True,
        "doesNotUseFrameImplementation": True,
        "sourceCodeIsNotOnSearchfox": True,
        "markerSchema": _SCHEMAS,
    }


def _schema(name: str, label: str, *data: tuple[str, str, str]) -> dict[str, Any]:
    return {
        "name": name,
        "tooltipLabel": label,
        "tableLabel": label,
        "chartLabel": label,
        "display": ["marker-chart", "marker-table", "timeline-overview"],
        "data": [
            {"key": key, "label": shown, "format": form, "searchable": True} for key, shown, form in data
        ],
    }


_SCHEMAS = [
    _schema(
        "Stall",
        "{marker.data.title}",
        ("title", "Stall", "string"),
        ("cause", "Cause", "string"),
        ("culprit", "Culprit", "string"),
        ("source", "Source", "string"),
        ("callback", "Callback", "string"),
        ("scene", "Scene", "string"),
        ("holder", "Held by", "string"),
        ("advice", "Advice", "string"),
        ("group", "Group", "string"),
        ("id", "Id", "string"),
    ),
    _schema(
        "ExactCalls",
        "{marker.data.name}",
        ("name", "Function", "string"),
        ("calls", "Calls", "integer"),
        ("itself", "Itself", "duration"),
        ("open", "Not returned", "string"),
    ),
    _schema("StallActivity", "{marker.data.name}", ("name", "What it did", "string")),
    _schema(
        "GarbageCollection",
        "{marker.data.name}",
        ("name", "Collection", "string"),
        ("collected", "Objects", "integer"),
    ),
    *(
        _schema(
            kind,
            "{marker.data.name}",
            ("name", name, "string"),
            ("task", "Task", "string"),
            ("shortTurns", "Short turns since the one before", "integer"),
            ("shortCallbacks", "Short callbacks", "integer"),
            ("shortTime", "Time of these turns", "duration"),
            ("idleTime", "Waited", "duration"),
        )
        for kind, name in (("TurnBefore", "Turn"), ("CallbackBefore", "Callback"))
    ),
]


class _ThreadNumbers:
    """Thread ids that are given once, and pids as texts that are unique for each session."""

    def __init__(self) -> None:
        self.threads = 0
        self._pids: set[str] = set()

    def tid(self) -> int:
        self.threads += 1
        return self.threads

    def pid(self, pid: int, session: str) -> str:
        text = str(pid) if str(pid) not in self._pids else f"{pid} {name_of(session)}"
        self._pids.add(text)
        return text


class _ProcessThreads:
    def __init__(self, session: str, exported: Exported, numbers: _ThreadNumbers, spool: Spool) -> None:
        self._session = session
        self._exported = exported
        self._numbers = numbers
        self._spool = spool
        self._others: dict[str, ThreadTables] = {}
        self._pid = ""
        self._name = ""

    def watched(self, stalls: Iterator[Stall], out: IO[bytes]) -> None:
        first = next(stalls)
        if not self._pid:
            self._pid = self._numbers.pid(first.pid, self._session)
            self._name = name_of(self._exported.program(first).name)
        until_ms: dict[str, float] = {}
        with closing(Spool()) as spool:
            tables, calls = ThreadTables(spool), ThreadTables(spool)
            has_calls = False
            for stall in chain((first,), stalls):
                self._add(stall, tables, until_ms)
                has_calls |= self._add_calls(stall, calls)
            name = f"{name_of(first.thread)} ({name_of(first.loop)})"
            self._write(tables, name, out, is_main=True, weight_type="tracing-ms")
            if has_calls:
                self._write(calls, f"{name}, {NAME}", out, is_main=False, weight_type="tracing-ms")

    def write_others(self, out: IO[bytes]) -> None:
        for name, tables in self._others.items():
            self._write(tables, f"{name}, at hangs", out, is_main=False, weight_type="samples")

    def _write(
        self, tables: ThreadTables, name: str, out: IO[bytes], *, is_main: bool, weight_type: str
    ) -> None:
        out.write(b",\n" if self._numbers.threads else b"\n")
        facts = {
            "processType": "default",
            "processName": self._name,
            "processStartupTime": 0,
            "processShutdownTime": None,
            "registerTime": 0,
            "unregisterTime": None,
            "pausedRanges": [],
            "name": name,
            "isMainThread": is_main,
            "pid": self._pid,
            "tid": self._numbers.tid(),
            "showMarkersInTimeline": is_main,
        }
        tables.copy_to(out, facts, weight_type)

    def _add(self, stall: Stall, tables: ThreadTables, until_ms: dict[str, float]) -> None:
        begin_ns = stall.began_wall_ns - self._exported.origin_wall_ns
        for stretch in stretches(stall):
            count = min(max(1, stretch.samples), _SAMPLES_A_STRETCH_MAX)
            stack = tables.stack(stretch.frames)
            for number in range(count):
                at_ns = begin_ns + stretch.begin_ns + stretch.length_ns * number // count
                until_ns = begin_ns + stretch.begin_ns + stretch.length_ns * (number + 1) // count
                tables.sample(stack, _ms(at_ns), _ms(until_ns - at_ns))
        tables.sample(None, _ms(begin_ns + stall.duration_ns), 0)
        self._add_markers(stall, begin_ns, tables, until_ms)
        self._add_others(stall, begin_ns)

    def _add_calls(self, stall: Stall, tables: ThreadTables) -> bool:
        begin_ns = stall.began_wall_ns - self._exported.origin_wall_ns
        calls = exact_calls(stall)
        for call in own_times(calls):
            tables.sample(tables.stack(call.path), _ms(begin_ns + call.own_begin_ns), _ms(call.own_ns))
        if calls:
            tables.sample(None, _ms(begin_ns + max(call.begin_ns + call.length_ns for call in calls)), 0)
        for call in calls:
            from_ms, to_ms = _ms(begin_ns + call.begin_ns), _ms(begin_ns + call.begin_ns + call.length_ns)
            data = {"type": "ExactCalls", "name": frame_name(call.frame), "calls": call.calls}
            more = {"open": "yes"} if call.is_open else {}
            tables.marker("ExactCalls", from_ms, to_ms, {**data, "itself": _ms(call.own_ns), **more})
        return bool(calls)

    def _add_markers(
        self, stall: Stall, begin_ns: int, tables: ThreadTables, until_ms: dict[str, float]
    ) -> None:
        timeline = timeline_of(stall)
        facts = {"type": "Stall", "title": whole(stall.title), **facts_of(stall)}
        tables.marker("Stall", _ms(begin_ns), _ms(begin_ns + stall.duration_ns), facts)

        def add(kind: str, data: dict[str, Any], from_ns: int, length_ns: int) -> None:
            """Leaves out moments that an earlier stall already has."""
            at_ms, end_ms = _ms(begin_ns + from_ns), _ms(begin_ns + from_ns + length_ns)
            if at_ms >= until_ms.get(kind, at_ms):
                until_ms[kind] = end_ms
                tables.marker(kind, at_ms, end_ms, {"type": kind, **data})

        for words, spans in groupby(timeline.spans, key=lambda span: activity_words(span.activity)):
            held = list(spans)
            add("StallActivity", {"name": words}, held[0].offset_ns, sum(span.length_ns for span in held))
        for pause in timeline.pauses:
            name = f"generation {pause.generation} on {name_of(pause.thread)}"
            data = {"name": name, "collected": pause.collected}
            add("GarbageCollection", data, pause.offset_ns, pause.length_ns)
        for work in timeline.earlier:
            kind = "TurnBefore" if work.kind is WorkKind.TURN else "CallbackBefore"
            add(kind, _earlier_data(work), -work.ago_ns, work.length_ns)

    def _add_others(self, stall: Stall, begin_ns: int) -> None:
        at_ns = timeline_of(stall).threads_at_ns
        if at_ns is None:
            return
        for thread in stall.threads:
            tables = self._other(thread)
            tables.sample(tables.stack(thread.frames[::-1]), _ms(begin_ns + at_ns), 1)

    def _other(self, thread: ThreadView) -> ThreadTables:
        name = name_of(thread.name or f"thread {thread.tid}")
        if name not in self._others and len(self._others) >= _OTHER_THREADS_MAX:
            name = _MORE_THREADS
        if name not in self._others:
            self._others[name] = ThreadTables(self._spool)
        return self._others[name]


def _earlier_data(work: EarlierWork) -> dict[str, Any]:
    data: dict[str, Any] = {"name": earlier_name(work)}
    if work.task is not None:
        data["task"] = whole(work.task)
    if work.short is not None:
        data["shortTurns"], data["shortCallbacks"] = work.short.turns, work.short.callbacks
        data["shortTime"], data["idleTime"] = _ms(work.short.busy_ns), _ms(work.short.idle_ns)
    return data


def _ms(ns: int) -> float:
    return ns / 1_000_000


FORMAT = Format(name="firefox", write=write)
