"""The header: whose file it is, on which clock, and where the sections are."""

from __future__ import annotations

from typing import Any, Final

from loopcanary.flight import format as layout
from loopcanary.flight.format import ClockKind, ProcessState, SectionKind, TakenBy
from loopcanary.flight.signals import NotedSignal, came_in, fault_of, killed_by, read_signals
from loopcanary.flight.source import ByteSource, FlightError
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Clock, Fault, KilledBy

LARGEST: Final = (1 << 63) - 1
"""Times and sums beyond are cut to this: stores and exporters have signed 64-bit words."""

_ONE_Q32: Final = 1 << 32
_OLDEST: Final = 1
_TAKERS: Final = frozenset(TakenBy)
"""A file of version 1 is one of version 2 without a keeper's page, and with 0 in the words that are new."""

# Element sizes and numbers that a reader bothers with. The writer of this version stays far below;
# beyond, a damaged file could only waste the reader's time.
_STRIDES: Final = {
    SectionKind.FACTS: (1, 1 << 20),
    SectionKind.COUNTERS: (8, 8),
    SectionKind.GC: (layout.GC_ENTRY.size, 4096),
    SectionKind.LANES: (layout.LANE.size, 1 << 16),
    SectionKind.SLOTS: (layout.SLOT_HEAP_OFFSET, 4 * layout.SLOT_BYTES),
    SectionKind.KEEPER: (layout.KEEPER.size, 4 * layout.KEEPER_BYTES),
}
_MOST: Final = {
    SectionKind.FACTS: 1 << 20,
    SectionKind.COUNTERS: layout.COUNTER_ROOM,
    SectionKind.GC: 256,
    SectionKind.LANES: 1024,
    SectionKind.SLOTS: 64,
    SectionKind.KEEPER: 1,
}


def bounded(value: int) -> int:
    return value if 0 <= value <= LARGEST else 0 if value < 0 else LARGEST


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightHeader:
    """Whose file it is, as the header says now. Times are monotonic nanoseconds."""

    version: int = 0
    file_bytes: int
    pid: int
    parent_pid: int
    process_start: int
    """Field 22 of /proc/PID/stat: a later process with the same pid has another. 0: unknown."""
    pid_namespace: int
    """Inode of /proc/self/ns/pid, 0: unknown."""
    boot_id: str
    """As in /proc/sys/kernel/random/boot_id; empty: unknown."""
    state: ProcessState = ProcessState.RUNNING
    started_ns: int
    ended_ns: int | None = None
    clock: Clock
    clock_kind: ClockKind = ClockKind.MONOTONIC
    heartbeat_ns: int
    """When the watchdog last looked; it does not look while parked."""
    parked: bool = False
    gc_total_ns: int = 0
    gc_running_since_ns: int | None = None
    """Begin of the garbage collection that runs now."""
    gc_running_tid: int = 0
    gc_running_generation: int = 0
    taken_by: TakenBy = TakenBy.DRAIN
    """Who takes stalls out of the slots."""
    signals: tuple[NotedSignal, ...] = ()
    """The latest signals that came to the process, oldest first."""
    by_exit: bool = False
    """The process has ended by os._exit."""

    def killed_by(self, since_ns: int) -> KilledBy | None:
        """What signals that came from then on say of the end of the process, which is dead; None: nothing."""
        return killed_by(self.signals, self.pid, since_ns)

    def fault_of(self, tid: int, since_ns: int) -> Fault | None:
        """The fault of this thread from then on by which the process, which is dead, ended; None: none."""
        return fault_of(self.signals, tid, since_ns)

    def came_in(self, begin_ns: int, end_ns: int | None) -> KilledBy | None:
        """What signals say that came in a stall with these ends; None: nothing, or it has not ended."""
        return None if end_ns is None else came_in(self.signals, self.pid, begin_ns, end_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class TickClock:
    """Turns ticks into nanoseconds with one reading of the anchor and the rate."""

    anchor_ns: int
    anchor_ticks: int
    rate_q32: int

    def instant_ns(self, ticks: int) -> int:
        """Monotonic time of a tick count, to the nanosecond as the native side computes it."""
        since = ticks - self.anchor_ticks
        ns = abs(since) * self.rate_q32 >> 32
        return bounded(self.anchor_ns + ns if since >= 0 else self.anchor_ns - ns)

    def duration_ns(self, ticks: int) -> int:
        return bounded(ticks * self.rate_q32 >> 32)

    def square_ns2(self, ticks2: int) -> int:
        return ticks2 * self.rate_q32 * self.rate_q32 >> 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The place of one kind of elements; `count` is clamped to what the file has room for."""

    offset: int
    stride: int
    count: int
    used_at: int
    """Offset of the word that says how many are used."""

    def at(self, index: int) -> int:
        return self.offset + index * self.stride


def check_identity(source: ByteSource) -> None:
    """FlightError unless this is a whole header of a version and byte order that we read."""
    if source.size == 0:
        raise FlightError(
            source.name, "is empty; its process has not begun to write it, or it is not a flight file"
        )
    magic = source.read(0, min(source.size, len(layout.MAGIC)))
    if not any(magic):
        raise FlightError(
            source.name, "has no header yet; its process is about to write it, or died before it could"
        )
    if magic != layout.MAGIC:
        raise FlightError(
            source.name, f"begins with {magic!r}, not {layout.MAGIC!r}; it is not a flight file"
        )
    if source.size < layout.HEADER_BYTES:
        raise FlightError(
            source.name,
            f"is cut short to {source.size} bytes, less than its header's {layout.HEADER_BYTES};"
            " nothing can be recovered",
        )
    fields = _read_fields(source)
    if fields["byte_order"] != layout.BYTE_ORDER_MARK:
        raise FlightError(
            source.name,
            f"has byte order mark {fields['byte_order']:#010x}, not {layout.BYTE_ORDER_MARK:#010x};"
            " it was written on a machine of another byte order, or is damaged",
        )
    version = fields["version"]
    if version > layout.VERSION:
        raise FlightError(
            source.name, f"written by a newer loopcanary (format {version}); upgrade to read it"
        )
    if version < _OLDEST:
        raise FlightError(
            source.name,
            f"has format {version}, not {_OLDEST} to {layout.VERSION};"
            " read it with the loopcanary that wrote it",
        )


_ENDED = (ProcessState.ENDED, ProcessState.EXITED)


def read_header(source: ByteSource) -> FlightHeader:
    fields = _read_fields(source)
    clock = _tick_clock(fields)
    collecting = bool(fields["gc_epoch"] & 1)
    return FlightHeader(
        version=fields["version"],
        file_bytes=bounded(fields["file_bytes"]),
        pid=bounded(fields["pid"]),
        parent_pid=bounded(fields["parent_pid"]),
        process_start=bounded(fields["process_start"]),
        pid_namespace=bounded(fields["pid_namespace"]),
        boot_id=_boot_id_text(fields["boot_id"]),
        state=ProcessState.ENDED if fields["state"] in _ENDED else ProcessState.RUNNING,
        by_exit=fields["state"] == ProcessState.EXITED,
        started_ns=bounded(fields["started_ns"]),
        ended_ns=bounded(fields["ended_ns"]) or None,
        clock=Clock(monotonic_ns=clock.anchor_ns, wall_ns=min(max(fields["anchor_wall_ns"], 0), LARGEST)),
        clock_kind=_clock_kind(fields["clock_kind"]),
        heartbeat_ns=bounded(fields["heartbeat_ns"]),
        parked=bool(fields["parked"]),
        gc_total_ns=bounded(fields["gc_total_ns"]),
        gc_running_since_ns=clock.instant_ns(fields["gc_begin"]) if collecting else None,
        gc_running_tid=bounded(fields["gc_tid"]),
        gc_running_generation=bounded(fields["gc_generation"]),
        taken_by=TakenBy(takes) if (takes := fields["takes"]) in _TAKERS else TakenBy.DRAIN,
        signals=read_signals(source),
    )


def read_tick_clock(source: ByteSource) -> TickClock:
    """The pairing of ticks and nanoseconds, at the rate as refined so far."""
    return _tick_clock(_read_fields(source))


def read_sections(source: ByteSource) -> dict[SectionKind, Section]:
    """Where everything is, clamped to the file's room. They never change, so read once."""
    begin = layout.HEADER.offsets["sections"]
    data = source.read(begin, layout.SECTION.size * len(SectionKind))
    sections = {}
    for kind in SectionKind:
        at = kind * layout.SECTION.size
        fields = layout.SECTION.read(data, at)
        used_at = begin + at + layout.SECTION.offsets["used"]
        sections[kind] = checked_section(
            source, kind.name.lower(), fields, used_at, strides=_STRIDES[kind], most=_MOST[kind]
        )
    return sections


def checked_section(
    source: ByteSource,
    name: str,
    fields: dict[str, Any],
    used_at: int,
    *,
    strides: tuple[int, int],
    most: int,
) -> Section:
    """The section as the file has room for it. FlightError: its elements have an impossible size."""
    offset, stride, count = fields["offset"], fields["stride"], fields["count"]
    least, largest = strides
    if count and not least <= stride <= largest:
        raise FlightError(
            source.name,
            f"is damaged: the {name} section has elements of {stride} bytes,"
            f" where {least} to {largest} are possible",
        )
    if offset % 8 or offset < layout.HEADER_BYTES or not count:
        count = 0
    room = max(source.size - offset, 0) // stride if count else 0
    return Section(offset=offset, stride=stride, count=min(count, room, most), used_at=used_at)


def _read_fields(source: ByteSource) -> dict[str, Any]:
    return layout.HEADER.read(source.read(0, layout.HEADER.size))


def _tick_clock(fields: dict[str, Any]) -> TickClock:
    # Before the first measurement, and where a tick is a nanosecond, the rate is one.
    rate = fields["tick_ns_q32"] or _ONE_Q32
    return TickClock(
        anchor_ns=bounded(fields["anchor_monotonic_ns"]), anchor_ticks=fields["anchor_ticks"], rate_q32=rate
    )


def _clock_kind(number: int) -> ClockKind:
    try:
        return ClockKind(number)
    except ValueError:
        return ClockKind.MONOTONIC


def _boot_id_text(raw: bytes) -> str:
    digits = raw.hex()
    if not any(raw):
        return ""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
