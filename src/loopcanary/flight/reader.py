"""FlightFile: the flight file of this process, of another that runs, or of one that is dead."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

from loopcanary.flight import format as layout
from loopcanary.flight.format import LaneState, SectionKind
from loopcanary.flight.header import (
    LARGEST,
    FlightHeader,
    Section,
    TickClock,
    bounded,
    check_identity,
    read_header,
    read_sections,
    read_tick_clock,
)
from loopcanary.flight.lanes import (
    EndedStall,
    lane_allowance_ns,
    lane_totals,
    read_ended,
    read_lane,
    text_of,
)
from loopcanary.flight.long_work import Subject, read_earlier
from loopcanary.flight.rings import overlapping, read_collections
from loopcanary.flight.slots import SlotCopy, copy_slot, read_slot_facts
from loopcanary.flight.source import BufferSource, ByteSource, FileSource, FlightError, open_source
from loopcanary.flight.stalls import LaneView, of_slot, record_evidence, settle, slot_evidence
from loopcanary.model import Collection, LaneTotals, StallEvidence, StallScope, WorkKind

if TYPE_CHECKING:
    from loopcanary.flight.glance import Glances
    from loopcanary.flight.looks import TaskLook

_EARLIER_OF_MAX: Final = 64
"""Of so many stalls without a slot it is read what was before them."""


class FlightFile:
    """Reads a flight file and trusts no byte. Thread-safe; a context manager.

    With any bytes, every method returns in bounded time or raises FlightError. What another process
    is writing meanwhile is read as it was at one moment, or left out.
    """

    is_mapped = True
    """Its process has it in memory as long as it lives."""

    def __init__(self, buffer: bytes | bytearray | memoryview, name: str = "flight buffer") -> None:
        """Reads a buffer: the own process's mapping, or a copy. `name` is for errors.

        Raises FlightError where it does not hold a flight file of a format that we read.
        """
        self._source, self._sections = _start(BufferSource(buffer, name))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Reads the file at `path`, of a living process or a dead one. Nothing is ever written to it.

        Raises FlightError where it cannot be opened, is a symbolic link or no regular file, belongs to
        another user (unless to root, or read by root), is too big, or does not hold a flight file of a
        format that we read.
        """
        file = cls.__new__(cls)
        file._source, file._sections = _start(open_source(path))  # noqa: SLF001 - another constructor
        return file

    def close(self) -> None:
        """Gives back the file or buffer; idempotent. Reading afterwards raises FlightError."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"FlightFile({self.name!r})"

    @property
    def name(self) -> str:
        """Path of the file, or the name given for the buffer."""
        return self._source.name

    @property
    def identity(self) -> tuple[int, int] | None:
        """Device and inode of the file; None for a buffer."""
        return self._source.identity

    @property
    def header(self) -> FlightHeader:
        """The header as it is now; read anew each time."""
        return read_header(self._source)

    @property
    def tick_clock(self) -> TickClock:
        """The file's clock at the rate as refined so far; keep it to convert many ticks."""
        return read_tick_clock(self._source)

    def facts(self) -> dict[str, Any]:
        """What the engine wrote about the session; {} where that cannot be read."""
        return read_facts(self._source, self._sections[SectionKind.FACTS])

    def counters(self) -> dict[str, int]:
        """What the native side did, and what it dropped, by the names of LC_COUNTER_LIST."""
        return read_counters(self._source, self._sections[SectionKind.COUNTERS])

    def collections(self) -> tuple[Collection, ...]:
        """The last garbage collections, oldest first."""
        return read_collections(self._source, self._sections[SectionKind.GC])

    def lanes(self) -> list[LaneTotals]:
        """Sums of every lane that a thread has or had."""
        clock = self.tick_clock
        section = self._sections[SectionKind.LANES]
        every = (
            lane_totals(read_lane(self._source, section, index), index, clock)
            for index in range(self._used(SectionKind.LANES))
        )
        return [totals for totals in every if totals is not None]

    def look(self, *, after: int = 0, has_circle: bool = False) -> TaskLook | None:
        """The last look at the tasks of asyncio; None: there was none with a higher serial than `after`, or
        `has_circle`, and it found no circle."""
        from loopcanary.flight.looks import looks_section, read_look  # most readers have no use for it

        return read_look(self._source, looks_section(self._source), after, has_circle=has_circle)

    @property
    def slot_count(self) -> int:
        return self._sections[SectionKind.SLOTS].count

    def glances(self) -> Glances:
        """A reader of lanes and slots that is cheap enough to look once a second; it lives with this file."""
        from loopcanary.flight.glance import Glances  # watched programs have no use for it

        return Glances(self._source, self._sections)

    def slot_evidence(
        self,
        index: int,
        *,
        drained: bool = False,
        faults: bool = False,
        hangs: bool = False,
    ) -> StallEvidence | None:
        """The stall in a slot.

        None where the slot is free, where its work was no stall (yet), and where the slot changed at
        every look. `drained`: also a stall that was taken from the slot, as long as no other stall uses the
        slot. `faults`: also the record of a thread that was in no turn when it caused a fault. `hangs`: also
        a program that does not start or end.
        """
        section = self._section_of(SectionKind.SLOTS, index)
        slot = copy_slot(self._source, section, index, drained=drained, taken=self._taken(index))
        if slot is None:
            return None
        # The lane is looked at after the slot: a thread that has moved on by then has left its record.
        lane = self._lane_of(slot)
        extent = settle(slot, lane, faults=faults, hangs=hangs)
        if extent is None:
            return None
        evidence = slot_evidence(slot, extent)
        header = self.header
        until_ns = evidence.last_look_ns if evidence.end_ns is None else evidence.end_ns
        collections = self.collections()
        record = extent.record
        if extent.scope is not StallScope.THREAD:
            evidence = self._with_earlier(
                evidence,
                slot.facts["lane"],
                slot.facts["lane_generation"],
                slot.facts["epoch"] if record is None else record.epoch,
                slot.facts["turn_epoch"] if record is None else record.turn_epoch,
            )
        return replace(
            evidence,
            earlier_collections=tuple(one for one in collections if one.end_ns <= evidence.begin_ns),
            threads=slot.threads(self._thread_names() | dict(evidence.thread_names))
            if slot.facts["thread_count"]
            else (),
            collections=overlapping(collections, header, evidence.begin_ns, until_ns),
            killed_by=header.came_in(evidence.begin_ns, evidence.end_ns),
        )

    def stalls(
        self, without: AbstractSet[int] = frozenset(), *, faults: bool = False, hangs: bool = False
    ) -> list[tuple[int, StallEvidence]]:
        """(slot, stall) of every slot that holds a stall. One that has just moved to another slot is in both,
        as in a copy of the file from before and after that: then only the later is given.

        Args:
            without: Serials of stalls that are left out before their slots are decoded, 4 ms each.
            faults: Whether also threads that caused a fault in no turn; the header says whether one ended the
                process.
            hangs: Whether also a program that does not start or end.
        """
        slots = self._sections[SectionKind.SLOTS]
        found: dict[int, tuple[int, StallEvidence]] = {}
        empty = list(range(self.slot_count))
        for _ in range(2):  # it may move to one that was free when we came by
            wanted = [
                index
                for index in empty
                if not without or read_slot_facts(self._source, slots, index)["serial"] not in without
            ]
            empty = []
            for index in wanted:
                evidence = self.slot_evidence(index, faults=faults, hangs=hangs)
                if evidence is None:
                    empty.append(index)
                    continue
                known = found.get(evidence.serial)
                if known is None or known[1].last_look_ns < evidence.last_look_ns:
                    found[evidence.serial] = index, evidence
        return sorted(found.values(), key=lambda pair: pair[0])

    def unslotted_stalls(self) -> list[StallEvidence]:
        """Stalls that their threads recorded and the watchdog did not come to look at: exact, no samples.

        Those that the watchdog has dealt with have, or had, a slot, and perhaps were reported since.
        """
        # The records first: the watchdog may take one over while we look, and is then seen to have.
        recorded = list(self._recorded())
        slots = self._sections[SectionKind.SLOTS]
        slotted = [read_slot_facts(self._source, slots, index) for index in range(slots.count)]
        records = [record for record, seen, _ in recorded if record.sequence > seen]
        about = {id(record) for facts in slotted for record in of_slot(facts, records)}
        header, collections = self.header, self.collections()
        found = []
        for record, seen, evidence in recorded:
            if record.sequence > seen and id(record) not in about:
                overlap = overlapping(collections, header, record.begin_ns, record.end_ns)
                came = header.came_in(record.begin_ns, record.end_ns)
                found.append((record, replace(evidence, collections=overlap, killed_by=came)))
        found.sort(key=lambda pair: pair[1].begin_ns)
        # Of the latest only: a damaged file may have records by the ten thousand.
        return [
            *(evidence for _, evidence in found[:-_EARLIER_OF_MAX]),
            *(
                self._with_earlier(
                    evidence, record.lane, record.lane_generation, record.epoch, record.turn_epoch
                )
                for record, evidence in found[-_EARLIER_OF_MAX:]
            ),
        ]

    def _recorded(self) -> Iterator[tuple[EndedStall, int, StallEvidence]]:
        """Each record, how many of its lane the watchdog has dealt with, and the record as evidence."""
        section, clock = self._sections[SectionKind.LANES], self.tick_clock
        for index in range(self._used(SectionKind.LANES)):
            lane = read_lane(self._source, section, index)
            if lane["state"] == LaneState.FREE:
                continue
            threshold_ns = clock.duration_ns(lane["threshold"])
            for record in read_ended(self._source, section, index, clock):
                if record.lane_generation == lane["generation"]:
                    yield record, lane["ended_seen"], record_evidence(record, lane, threshold_ns)

    def _lane_of(self, slot: SlotCopy) -> LaneView | None:
        index = slot.facts["lane"]
        section = self._sections[SectionKind.LANES]
        if index >= section.count:
            return None
        lane = read_lane(self._source, section, index)
        if lane["generation"] != slot.facts["lane_generation"]:
            return None
        # After the epochs: see the order of stores in native/core/lane/lane.h.
        clock = self.tick_clock
        ended = read_ended(self._source, section, index, clock)
        return LaneView(
            epoch=lane["epoch"],
            turn_epoch=lane["turn_epoch"],
            rest_ns=clock.instant_ns(lane["turn_rest"]) if lane["turn_rest"] else None,
            allowance_ns=lane_allowance_ns(lane, clock),
            ended_seen=lane["ended_seen"],
            ended=ended,
        )

    def _with_earlier(
        self, evidence: StallEvidence, lane: int, generation: int, epoch: int, turn_epoch: int
    ) -> StallEvidence:
        """The evidence, with what the lane did before the stall."""
        is_turn = evidence.scope is StallScope.TURN
        stall = Subject(
            lane_generation=generation,
            kind=WorkKind.TURN if is_turn else WorkKind.CALLBACK,
            epoch=turn_epoch if is_turn else epoch,
            begin_ns=evidence.begin_ns,
        )
        section = self._sections[SectionKind.LANES]
        earlier = read_earlier(self._source, section, lane, self.tick_clock, stall)
        return replace(
            evidence, earlier=earlier.work, earlier_from_ns=earlier.from_ns, earlier_last=earlier.last
        )

    def _thread_names(self) -> dict[int, str]:
        section = self._sections[SectionKind.LANES]
        lanes = (read_lane(self._source, section, index) for index in range(self._used(SectionKind.LANES)))
        return {
            lane["tid"]: text_of(lane["thread_name"]) for lane in lanes if lane["state"] == LaneState.ACTIVE
        }

    def _taken(self, index: int) -> int:
        """Serial of the slot's last stall that a keeper has stored; 0: none has."""
        section = self._sections[SectionKind.KEEPER]
        if not section.count or index >= layout.SLOT_COUNT:
            return 0
        at = section.offset + layout.KEEPER.offsets["taken"] + 8 * index
        return int.from_bytes(self._source.read(at, 8), "little")

    def _used(self, kind: SectionKind) -> int:
        section = self._sections[kind]
        return min(int.from_bytes(self._source.read(section.used_at, 8), "little"), section.count)

    def _section_of(self, kind: SectionKind, index: int) -> Section:
        section = self._sections[kind]
        if not 0 <= index < section.count:
            what = kind.name.lower()
            raise FlightError(self.name, f"has {section.count} {what}; there is no number {index} among them")
        return section


def open_own(path: str | os.PathLike[str], descriptor: Callable[[], int]) -> FlightFile:
    """This process's own file; by a descriptor that a forked child does not keep, and that leads there also
    after a change of the user or of the root. By its path, where the program has closed that.
    FlightError, as `FlightFile.open`."""
    try:
        source = FileSource(path, descriptor())
    except OSError:
        return FlightFile.open(path)
    file = FlightFile.__new__(FlightFile)
    file._source, file._sections = _start(source)  # noqa: SLF001 - another constructor
    return file


def _start(source: ByteSource) -> tuple[ByteSource, dict[SectionKind, Section]]:
    try:
        check_identity(source)
        return source, read_sections(source)
    except FlightError:
        source.close()
        raise


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
