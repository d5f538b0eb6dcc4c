"""The last look at the tasks of asyncio (native/cpython/tasks/look.h). Trusts no byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from loopcanary.flight import format as layout
from loopcanary.flight.header import Section, bounded, checked_section
from loopcanary.flight.heap import SlotHeap
from loopcanary.flight.source import ByteSource
from loopcanary.late_dataclass import dataclass
from loopcanary.model.circles import task_circles
from loopcanary.model.outside import TaskSight
from loopcanary.model.task_reads import TaskAwait, TaskRead, in_order, sights

_TRIES: Final = 4
_AWAITS_MAX: Final = 64
_HELD_MAX: Final = 16
_CIRCLES: Final = layout.LOOK_OFFSET + layout.LOOK.offsets["circles"]
_STRIDES: Final = layout.SLOT_BYTES, 4 * layout.SLOT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLook:
    """What the tasks of a process waited for at one moment."""

    serial: int
    began_ns: int
    """Monotonic."""
    tasks: int
    others: int
    """Tasks that are not of asyncio's C class: they are not read."""
    groups: int
    """How many distinct places they wait at; only the largest groups are told."""
    reads: tuple[TaskRead, ...]
    """One of each group, and those of circles."""
    circles: int
    """That have stood still since the look before."""

    def sights(self) -> tuple[TaskSight, ...]:
        """What each of `reads` waits for, in the same order."""
        return sights(self.reads)

    def circles_of(self, tasks: Sequence[TaskSight]) -> list[tuple[int, ...]]:
        """The circles among `sights()` that have stood still since a look before, by number."""
        return [
            circle
            for circle in task_circles(tasks)
            if all(0 < (tasks[number].since_ns or 0) < self.began_ns for number in circle)
        ]


def looks_section(source: ByteSource) -> Section:
    """Where looks are; without elements in files that have none."""
    at = layout.HEADER.offsets["looks"]
    fields = layout.SECTION.read(source.read(at, layout.SECTION.size))
    return checked_section(
        source,
        "looks",
        fields,
        at + layout.SECTION.offsets["used"],
        strides=_STRIDES,
        most=layout.LOOK_COUNT,
    )


def read_look(
    source: ByteSource, section: Section, after: int = 0, *, has_circle: bool = False
) -> TaskLook | None:
    """See FlightFile.look."""
    for _ in range(_TRIES):
        serials = [_serial(source, section, index) for index in range(section.count)]
        serial = max(serials, default=0)
        if serial <= after:
            return None
        index = serials.index(serial)
        used = _word(source, section, index, "heap_used")
        begin = section.at(index)
        if has_circle and not any(source.read(begin + _CIRCLES, 8)):
            return None
        data = bytes(layout.LOOK_OFFSET) + source.read(begin + layout.LOOK_OFFSET, layout.LOOK_BYTES)
        if _serial(source, section, index) == serial:
            return _look_of(data, min(used, layout.SLOT_BYTES), serial)
    return None


def _serial(source: ByteSource, section: Section, index: int) -> int:
    return _word(source, section, index, "serial")


def _word(source: ByteSource, section: Section, index: int, name: str) -> int:
    at = section.at(index) + layout.SLOT_FACTS.offsets[name]
    return int.from_bytes(source.read(at, 8), "little")


def _look_of(data: bytes, used: int, serial: int) -> TaskLook:
    fields = layout.LOOK.read(data, layout.LOOK_OFFSET)
    reading = _Reading(data, used)
    count = min(fields["entry_count"], layout.LOOK_ENTRIES_MAX)
    first = layout.LOOK_OFFSET + layout.LOOK.offsets["entries"]
    places = range(first, first + count * layout.LOOK_ENTRY.size, layout.LOOK_ENTRY.size)
    return TaskLook(
        serial=bounded(serial),
        began_ns=bounded(fields["began_ns"]),
        tasks=bounded(fields["tasks"]),
        others=bounded(fields["others"]),
        groups=bounded(fields["groups"]),
        circles=bounded(fields["circles"]),
        reads=tuple(in_order(map(reading.task, places))),
    )


class _Reading:
    def __init__(self, data: bytes, used: int) -> None:
        self._data = data
        self._heap = SlotHeap(data, used)

    def task(self, at: int) -> TaskRead:
        entry = layout.LOOK_ENTRY.read(self._data, at)
        names = {
            name: self._heap.text(entry[name]) or ""
            for name in ("name", "loop_type", "callback", "future_type", "future_callback", "end_type")
        }
        return TaskRead(
            address=entry["task"],
            loop=entry["loop"],
            state=entry["state"],
            future=entry["future"],
            cut=bool(entry["cut"]),
            awaits=tuple(self._awaits(entry)),
            count=entry["count"],
            since_ns=bounded(entry["since_ns"]),
            **names,
        )

    def _awaits(self, entry: dict[str, Any]) -> Iterator[TaskAwait]:
        for raw in self._several(layout.LOOK_AWAIT, entry["awaits"], min(entry["await_count"], _AWAITS_MAX)):
            held = self._several(layout.LOOK_HELD, raw["held"], min(raw["held_count"], _HELD_MAX))
            yield TaskAwait(
                frame=self._heap.frame(raw["frame"]),
                first=raw["first"],
                held=tuple((one["object"], self._heap.text(one["function"]) or "") for one in held),
            )

    def _several(self, kind: layout.Layout, offset: int, count: int) -> Iterator[dict[str, Any]]:
        for number in range(count):
            at = offset + number * kind.size
            if not self._heap.holds(at, kind.size):
                return
            yield kind.read(self._data, at)
