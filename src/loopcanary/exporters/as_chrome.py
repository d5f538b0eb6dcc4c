"""The Trace Event Format of Chrome, as JSON: Perfetto opens it, too.

Each watched thread has a track of its stalls with the frames inside, and below it tracks of what it did, who
held it up, its traced calls, the garbage collections, and the long turns and callbacks before. Other threads
show what they ran when the stall became a hang.

Fields as in "Trace Event Format" (Google, 2016): complete events (`X`) with `ts` and `dur` in microseconds,
instant events (`i`), flows (`s`, `f`), metadata (`M`). All but flows stand alone: one that is lost leaves no
other without its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from math import inf, ulp
from typing import IO, Any

from loopcanary.exporters import Exported, Format
from loopcanary.exporters.exact_calls import NAME, exact_calls
from loopcanary.exporters.spans import events, timeline_of
from loopcanary.exporters.texts import (
    activity_words,
    earlier_name,
    encoded,
    facts_of,
    frame_name,
    name_of,
    short_place,
    whole,
)
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Activity, EarlierWork, StackFrame, Stall, Timeline
from loopcanary.model.calls import TimedCall
from loopcanary.model.timeline import Doing, WorkKind
from loopcanary.wire import time_to_text
from loopcanary.words.waiting import held_words

_STOLEN_PIDS = 1 << 22
"""Linux has no pid of this size. Processes of other hosts and times that share a pid get numbers from here
on."""
_OTHER_THREADS_MAX = 256
_MORE_THREADS = "more threads"
_CALLS = f"{NAME}, merged by path"
_HELD_UP_BY = "held up by"
_LEDGER = ("on_cpu", "gil_wait", "run_queue", "blocked", "gc")


@dataclass(frozen=True, slots=True)
class Slice:
    """Something that lasts, in nanoseconds from the origin."""

    begin_ns: int
    length_ns: int
    name: str
    category: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    """Texts and numbers, shown on a click."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """A row of slices. Those of one track nest, or do not overlap."""

    number: int
    pid: int
    name: str


def _draw(exported: Exported, writer: _EventWriter) -> None:
    process: _ProcessTracks | None = None
    numbers = _TrackNumbers()
    for stall in exported.stalls:
        if process is None or process.session != stall.session:
            process = _ProcessTracks(stall.session, numbers.pid(stall.pid), numbers, writer)
            writer.process(process.pid, name_of(exported.program(stall).name))
        each = exported.each_call.get(stall.id, ())
        process.draw(stall, stall.began_wall_ns - exported.origin_wall_ns, each)


class _TrackNumbers:
    """Hands out each number once."""

    def __init__(self) -> None:
        self._pids: set[int] = set()
        self._stolen = _STOLEN_PIDS
        self._track = 0

    def pid(self, pid: int) -> int:
        """The process's own pid, unless another session in the trace has it."""
        if pid in self._pids or not 0 < pid < _STOLEN_PIDS:
            self._stolen += 1
            pid = self._stolen
        self._pids.add(pid)
        return pid

    def track(self) -> int:
        self._track += 1
        return self._track


class _ProcessTracks:
    """The tracks of one session."""

    def __init__(self, session: str, pid: int, numbers: _TrackNumbers, writer: _EventWriter) -> None:
        self.session = session
        self.pid = pid
        self._numbers = numbers
        self._writer = writer
        self._threads: dict[str, Track] = {}
        self._watched: tuple[str, str] | None = None
        self._rows: dict[str, Track] = {}
        self._until: dict[str, int] = {}

    def draw(self, stall: Stall, begin_ns: int, each: Sequence[TimedCall]) -> None:
        if self._watched != (stall.thread, stall.loop):
            self._watched, self._rows, self._until = (stall.thread, stall.loop), {}, {}
        own = self._row(stall, "")
        timeline = timeline_of(stall)
        self._writer.slices(own, _stall_and_frames(stall, begin_ns))
        if each:
            self._writer.slices(self._row(stall, NAME), _each_call(each, begin_ns))
        elif calls := _calls(stall, begin_ns):
            self._writer.slices(self._row(stall, _CALLS), calls)
        for kind, slices in (
            ("what it did", _doings(timeline, begin_ns)),
            (_HELD_UP_BY, _holders(timeline, begin_ns)),
            ("garbage collections", _pauses(timeline, begin_ns)),
            ("turns before stalls", _earlier(timeline, begin_ns, WorkKind.TURN)),
            ("callbacks before stalls", _earlier(timeline, begin_ns, WorkKind.CALLBACK)),
        ):
            self._add(stall, kind, slices)
        if timeline.threads_at_ns is not None:
            self._draw_threads(stall, begin_ns + timeline.threads_at_ns)

    def _row(self, stall: Stall, kind: str) -> Track:
        track = self._rows.get(kind)
        if track is None:
            name = kind or f"{name_of(stall.thread)} ({name_of(stall.loop)})"
            track = Track(number=self._numbers.track(), pid=self.pid, name=name)
            self._rows[kind] = track
            self._writer.track(track)
        return track

    def _add(self, stall: Stall, kind: str, slices: Iterable[Slice]) -> None:
        """Adds what no earlier stall has."""
        news = []
        for one in slices:
            if one.begin_ns >= self._until.get(kind, one.begin_ns):
                self._until[kind] = one.begin_ns + one.length_ns
                news.append(one)
        if not news:
            return
        row = self._row(stall, kind)
        self._writer.slices(row, news)
        if kind == _HELD_UP_BY:
            for one in news:
                self._writer.flow(self._row(stall, ""), row, one.begin_ns, kind)

    def _draw_threads(self, stall: Stall, at_ns: int) -> None:
        for thread in stall.threads:
            name = name_of(thread.name or f"thread {thread.tid}")
            if name not in self._threads and len(self._threads) >= _OTHER_THREADS_MAX:
                name = _MORE_THREADS
            track = self._threads.get(name)
            if track is None:
                track = Track(number=self._numbers.track(), pid=self.pid, name=f"{name}, at hangs")
                self._threads[name] = track
                self._writer.track(track)
            facts = {
                "state": whole(thread.state),
                "holds the GIL": thread.holds_gil,
                "waits for the GIL": thread.waits_for_gil,
                "stall": whole(stall.id),
                **_stack_facts(thread.frames),
            }
            top = thread.frames[0] if thread.frames else None
            self._writer.instant(track, at_ns, "(no frames)" if top is None else frame_name(top), facts)


def _stall_facts(stall: Stall) -> dict[str, Any]:
    told: dict[str, Any] = {
        "state": stall.state.value,
        "severity": stall.severity.value,
        "loop": stall.loop,
        "task": stall.task,
        "waited_on": None if stall.waited_on is None else stall.waited_on.name,
        "evidence": "\n".join(stall.evidence),
    }
    ledger = {name: getattr(stall.ledger, f"{name}_ns") for name in _LEDGER}
    return {
        **facts_of(stall),
        "confidence": stall.confidence,
        **{name: whole(value) for name, value in told.items() if value},
        **{f"{name}_ms": ns / 1_000_000 for name, ns in ledger.items() if ns is not None},
    }


def _stall_and_frames(stall: Stall, begin_ns: int) -> list[Slice]:
    facts = _stall_facts(stall)
    slices = [Slice(begin_ns, max(0, stall.duration_ns), name_of(stall.title), stall.cause.value, facts)]
    opened: list[tuple[int, int, StackFrame]] = []  # place in `slices`, begin, frame
    for event in events(stall):
        if event.entered is not None:
            opened.append((len(slices), event.at_ns, event.entered))
            slices.append(slices[0])  # its place, as it comes before what it holds
            continue
        place, entered_ns, frame = opened.pop()
        slices[place] = _frame_slice(frame, begin_ns + entered_ns, event.at_ns - entered_ns)
    return slices


def _frame_slice(frame: StackFrame, begin_ns: int, length_ns: int, **facts: Any) -> Slice:
    where = {"file": whole(frame.file), "line": frame.line} if frame.file else {}
    category = "own code" if frame.in_app else "library"
    return Slice(begin_ns, length_ns, frame_name(frame), category, {**where, **facts})


def _calls(stall: Stall, begin_ns: int) -> list[Slice]:
    """One slice for all calls by a path, whose number is a fact of it."""
    lost = {"overwritten": stall.calls.lost} if stall.calls is not None and stall.calls.lost else {}
    return [
        _frame_slice(
            call.frame,
            begin_ns + call.begin_ns,
            call.length_ns,
            calls=call.calls,
            itself_ms=call.own_ns / 1_000_000,
            **({"returned": False} if call.is_open else {}),
            **(lost if len(call.path) == 1 else {}),
        )
        for call in exact_calls(stall)
    ]


def _each_call(each: Sequence[TimedCall], begin_ns: int) -> Iterator[Slice]:
    for call in each:
        facts = {"returned": False} if call.is_open else {}
        yield _frame_slice(call.frame, begin_ns + call.begin_ns, call.length_ns, **facts)


def _doings(timeline: Timeline, begin_ns: int) -> Iterator[Slice]:
    for name, activity, from_ns, until_ns in _merged(timeline, activity_words):
        facts = {"kernel state": whole(activity.state), "gil": activity.gil.value}
        yield Slice(begin_ns + from_ns, until_ns - from_ns, name, activity.doing.value, facts)


def _holders(timeline: Timeline, begin_ns: int) -> Iterator[Slice]:
    for name, activity, from_ns, until_ns in _merged(timeline, _holder_words):
        if name:
            held = "lock" if activity.lock is not None else "gil"
            facts = _stack_facts(activity.holder_frames)
            yield Slice(begin_ns + from_ns, until_ns - from_ns, name, held, facts)


def _holder_words(activity: Activity) -> str:
    if activity.holder is None:
        return ""
    running = f": {frame_name(activity.holder_frames[0])}" if activity.holder_frames else ""
    return name_of(f"{held_words(activity.lock, activity.holder)}{running}")


def _merged(timeline: Timeline, words: Any) -> Iterator[tuple[str, Activity, int, int]]:
    """(words, activity, from, until), neighbours with the same words as one."""
    name, activity, from_ns, until_ns = None, None, 0, 0
    for span in timeline.spans:
        said = words(span.activity)
        if activity is not None and said != name:
            yield name or "", activity, from_ns, until_ns
            activity = None
        if activity is None:
            name, activity, from_ns = said, span.activity, span.offset_ns
        until_ns = span.offset_ns + span.length_ns
    if activity is not None:
        yield name or "", activity, from_ns, until_ns


def _pauses(timeline: Timeline, begin_ns: int) -> Iterator[Slice]:
    for pause in timeline.pauses:
        name = f"generation {pause.generation} on {name_of(pause.thread)}"
        facts = {"collected": pause.collected, "on the stalled thread": pause.own}
        yield Slice(begin_ns + pause.offset_ns, pause.length_ns, name, Doing.GC.value, facts)


def _earlier(timeline: Timeline, begin_ns: int, kind: WorkKind) -> Iterator[Slice]:
    for work in timeline.earlier:
        if work.kind is kind:
            yield Slice(
                begin_ns - work.ago_ns, work.length_ns, earlier_name(work), kind.value, _earlier_facts(work)
            )


def _earlier_facts(work: EarlierWork) -> dict[str, Any]:
    facts: dict[str, Any] = {} if work.task is None else {"task": whole(work.task)}
    if work.kind is WorkKind.TURN:
        facts |= {"callbacks": work.callbacks, "longest_ms": work.longest_ns / 1_000_000}
    if work.short is not None:
        facts |= {
            "short turns since the one before": work.short.turns,
            "short callbacks": work.short.callbacks,
            "short_ms": work.short.busy_ns / 1_000_000,
            "idle_ms": work.short.idle_ns / 1_000_000,
        }
    return facts


def _stack_facts(frames: tuple[StackFrame, ...]) -> dict[str, Any]:
    if not frames:
        return {}
    lines = [f"{frame_name(frame)} ({short_place(frame)})" for frame in frames]
    return {"stack": "\n".join(lines)}


def write(exported: Exported, out: IO[bytes]) -> None:
    """Writes the object form; `traceEvents` follow tracks, not time, as the format allows."""
    head = {
        "displayTimeUnit": "ms",
        "otherData": {"exporter": "loopcanary", "origin": time_to_text(exported.origin_wall_ns)},
    }
    out.write(f'{encoded(head)[:-1]},"traceEvents":[\n'.encode("ascii"))
    _draw(exported, _EventWriter(out))
    out.write(b"\n]}\n")


class _EventWriter:
    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._is_first = True
        self._flows = 0

    def process(self, pid: int, name: str) -> None:
        self._metadata(pid, 0, "process_name", {"name": name})

    def track(self, track: Track) -> None:
        self._metadata(track.pid, track.number, "thread_name", {"name": track.name})
        # As the tracks were made: those of a thread below it.
        self._metadata(track.pid, track.number, "thread_sort_index", {"sort_index": track.number})

    def slices(self, track: Track, slices: Iterable[Slice]) -> None:
        open_until: list[tuple[int, float]] = []
        for one in slices:
            while open_until and open_until[-1][0] <= one.begin_ns:
                open_until.pop()
            ts, dur = _microseconds(one, open_until[-1][1] if open_until else inf)
            open_until.append((one.begin_ns + one.length_ns, ts + dur))
            self._put(
                {
                    "ph": "X",
                    "name": one.name,
                    "cat": one.category,
                    "ts": ts,
                    "dur": dur,
                    "pid": track.pid,
                    "tid": track.number,
                    "args": one.facts,
                }
            )

    def instant(self, track: Track, at_ns: int, name: str, facts: dict[str, Any]) -> None:
        self._put(
            {
                "ph": "i",
                "s": "t",
                "name": name,
                "cat": "hang",
                "ts": at_ns / 1_000,
                "pid": track.pid,
                "tid": track.number,
                "args": facts,
            }
        )

    def flow(self, begin: Track, end: Track, at_ns: int, name: str) -> None:
        self._flows += 1
        arrow = {"name": name, "cat": "flow", "id": self._flows, "ts": at_ns / 1_000, "args": {}}
        self._put({"ph": "s", **arrow, "pid": begin.pid, "tid": begin.number})
        # `bp`: it ends at the slice around it, not at the next one.
        self._put({"ph": "f", "bp": "e", **arrow, "pid": end.pid, "tid": end.number})

    def _metadata(self, pid: int, tid: int, name: str, facts: dict[str, Any]) -> None:
        self._put({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": facts})

    def _put(self, event: dict[str, Any]) -> None:
        self._out.write((("" if self._is_first else ",\n") + encoded(event)).encode("ascii"))
        self._is_first = False


def _microseconds(one: Slice, until: float) -> tuple[float, float]:
    """Begin and length. Their sum is later neither than `until`, the sum of the slice around it, nor than the
    next slice: Speedscope adds them up and nests by the result, in which a last bit counts."""
    ts, dur = one.begin_ns / 1_000, one.length_ns / 1_000
    until = min(until, (one.begin_ns + one.length_ns) / 1_000)
    if ts + dur > until:
        dur = max(until - ts, 0.0)
    while dur > 0 and ts + dur > until:
        dur = max(dur - ulp(max(abs(ts), abs(until), dur)), 0.0)
    return ts, dur


FORMAT = Format(name="chrome", write=write)
