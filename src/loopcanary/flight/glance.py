"""A cheap look at a flight file, once a second or so: what its lanes do, and which stalls its slots hold.

Reads little: lanes that changed, the facts of slots in use, and of a slot's heap three names. What costs more
(samples, stacks, a verdict) is `FlightFile.slot_evidence`, for who wants it of a stall that is new.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from loopcanary.flight import format as layout
from loopcanary.flight.format import EndedKind, LaneState, Level, SectionKind, SlotState
from loopcanary.flight.header import Section, TickClock, bounded, read_tick_clock
from loopcanary.flight.lanes import carried, lane_allowance_ns, lane_totals
from loopcanary.flight.slots import read_slot_facts
from loopcanary.flight.source import ByteSource
from loopcanary.flight.stalls import HANGS
from loopcanary.late_dataclass import dataclass
from loopcanary.model import IssueKind
from loopcanary.model.live import LaneReading, Work

_LANES_MAX: Final = layout.LANE_COUNT
_TRIES: Final = 4
_HOT_BYTES: Final = 64
_OWNER_AT: Final = layout.LANE.offsets["state"]
_OWNER_END: Final = layout.LANE.offsets["loop_kind"]
_EPOCH: Final = layout.LANE.offsets["epoch"]
_TURN_EPOCH: Final = layout.LANE.offsets["turn_epoch"]
_GOING_ON: Final = (SlotState.OPEN, SlotState.STALL)
_LARGEST_LEVEL: Final = max(Level)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotGlance:
    """A slot that holds a stall, or did so until it was drained: what it holds stays until another comes."""

    index: int
    serial: int
    lane: int
    lane_generation: int
    level: int
    begin_ns: int
    end_ns: int | None
    """None: the stall goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotMark:
    """A slot in use: whose stall it holds, and how far that has come."""

    index: int
    serial: int
    state: SlotState
    begin_ns: int


@dataclass(slots=True)
class _Known:
    """A lane as it was read last."""

    raw: bytes
    reading: LaneReading | None
    is_closed: bool


class Glances:
    """Looks at one flight file again and again. Not thread-safe. Every method may raise FlightError."""

    def __init__(self, source: ByteSource, sections: Mapping[SectionKind, Section]) -> None:
        self._source = source
        self._lane_section = sections[SectionKind.LANES]
        self._slot_section = sections[SectionKind.SLOTS]
        self._keeper_section = sections[SectionKind.KEEPER]
        self._known: dict[int, _Known] = {}
        self._names: dict[tuple[int, ...], Work | None] = {}

    def look(self) -> tuple[tuple[LaneReading, ...], tuple[SlotGlance, ...]]:
        """Lanes that a thread has or had, and stalls, as they are now."""
        clock = read_tick_clock(self._source)
        # The slots after the lanes: one that is about a lane's epoch was opened after the epoch began.
        lanes = [self._lane(index, clock) for index in range(self._used(self._lane_section, _LANES_MAX))]
        slots = [one for one in self._slots() if one[1]["kind"] not in HANGS]
        going_on = {facts["lane"]: (index, facts) for index, facts in slots if facts["state"] in _GOING_ON}
        seen = tuple(
            self._with_slot(known, *going_on[index]) if index in going_on else known.reading
            for index, known in enumerate(lanes)
            if known.reading is not None
        )
        live_names = {_names_key(index, facts) for index, facts in slots}
        self._names = {key: work for key, work in self._names.items() if key in live_names}
        return tuple(one for one in seen if one is not None), _stalls(slots)

    def hang(self) -> tuple[IssueKind, int] | None:
        """That the program does not start, or does not end, and since when; None: it does, for all that is
        certain."""
        found = [
            facts
            for _, facts in self._slots()
            if facts["kind"] in HANGS and facts["state"] == SlotState.STALL
        ]
        return (HANGS[found[0]["kind"]], bounded(found[0]["begin_ns"])) if found else None

    def marks(self) -> list[SlotMark]:
        """What is in the slots; without stalls that a keeper has stored. Lanes are not looked at."""
        taken = self._taken()
        found = []
        for index, facts in self._slots():
            is_stored = facts["state"] == SlotState.ENDED and facts["serial"] == taken.get(index)
            if facts["state"] in (*_GOING_ON, SlotState.ENDED) and not is_stored:
                mark = SlotMark(
                    index=index,
                    serial=bounded(facts["serial"]),
                    state=SlotState(facts["state"]),
                    begin_ns=bounded(facts["begin_ns"] or facts["turn_begin_ns"]),
                )
                found.append(mark)
        return found

    def _slots(self) -> list[tuple[int, dict[str, Any]]]:
        """Facts of all slots, by number. Read twice: a stall that goes on may move behind our back, to a slot
        that was free when we came by."""
        before, now = self._slot_facts(), self._slot_facts()
        there = {facts["serial"] for _, facts in now if facts["state"] != SlotState.FREE}
        missed = [one for one in before if one[1]["state"] in _GOING_ON and one[1]["serial"] not in there]
        return _each_once([*now, *missed])

    def _slot_facts(self) -> list[tuple[int, dict[str, Any]]]:
        """Without a fault that came in no turn: it is of a process that dies, or has survived it."""
        facts = [
            (index, read_slot_facts(self._source, self._slot_section, index))
            for index in range(self._used(self._slot_section, self._slot_section.count))
        ]
        return [one for one in facts if one[1]["kind"] != EndedKind.FAULT]

    def is_closed(self) -> bool:
        """Whether a keeper has stored the end of the process."""
        section = self._keeper_section
        at = section.offset + layout.KEEPER.offsets["closed"]
        return bool(section.count and int.from_bytes(self._source.read(at, 8), "little"))

    def _taken(self) -> dict[int, int]:
        """Serials of the last stored stalls, by slot; 0 is none."""
        section = self._keeper_section
        if not section.count:
            return {}
        at = section.offset + layout.KEEPER.offsets["taken"]
        words = struct.unpack(f"<{layout.SLOT_COUNT}Q", self._source.read(at, 8 * layout.SLOT_COUNT))
        return {index: serial for index, serial in enumerate(words) if serial}

    def _used(self, section: Section, most: int) -> int:
        if not section.count:
            return 0
        return min(int.from_bytes(self._source.read(section.used_at, 8), "little"), section.count, most)

    def _lane(self, index: int, clock: TickClock) -> _Known:
        at = self._lane_section.at(index)
        known = self._known.get(index)
        if known is not None and known.is_closed:
            # No thread stores to it until it is given out again.
            owner = self._source.read(at + _OWNER_AT, _OWNER_END - _OWNER_AT)
            if owner == known.raw[_OWNER_AT:_OWNER_END]:
                return known
        before, raw, after = self._copies(at)
        if known is not None and raw == known.raw and not _in_turn(raw):
            return known
        fields = layout.LANE.read(raw)
        reading = None
        totals = lane_totals(fields, index, clock)
        if totals is not None:
            # A setting, which its way through ticks and back has moved by nanoseconds.
            threshold_ns = round(clock.duration_ns(fields["threshold"]), -3)
            reading = LaneReading(
                totals=totals,
                threshold_ns=threshold_ns,
                latest_stall_ns=_latest_stall_ns(fields, after, clock),
            )
            if fields["state"] == LaneState.ACTIVE:
                reading = _with_present(reading, fields, before, after, clock)
        found = _Known(raw=raw, reading=reading, is_closed=fields["state"] == LaneState.CLOSED)
        self._known[index] = found
        return found

    def _copies(self, at: int) -> tuple[bytes, bytes, bytes]:
        """The hot line, the lane, and the lane again, as they were one after the other."""
        size = layout.LANE.struct.size
        before = self._source.read(at, _HOT_BYTES)
        raw = self._source.read(at, size)
        after = raw
        for _ in range(_TRIES):
            after = self._source.read(at, size)
            if not carried(raw, after):
                break
            before, raw = raw[:_HOT_BYTES], after
        return before, raw, after

    def _with_slot(self, known: _Known, index: int, facts: dict[str, Any]) -> LaneReading | None:
        """The lane with what the slot knows of its present work, if the slot is about that."""
        reading, raw = known.reading, known.raw
        if reading is None or bounded(facts["lane_generation"]) != reading.totals.generation:
            return reading
        of_callback = facts["epoch"] == _word(raw, _EPOCH) and facts["epoch"] & 1
        of_turn = facts["turn_epoch"] == _word(raw, _TURN_EPOCH) and facts["turn_epoch"] & 1
        if not of_callback and not of_turn:
            return reading
        # Names of a callback that is over are not those of what its turn does now.
        names = of_callback or not facts["epoch"]
        return replace(
            reading,
            in_stall=facts["state"] == SlotState.STALL,
            last_look_ns=bounded(facts["last_look_ns"]),
            work=self._work(index, facts) if names else None,
        )

    def _work(self, index: int, facts: dict[str, Any]) -> Work | None:
        key = _names_key(index, facts)
        if key not in self._names:
            self._names[key] = self._read_work(index, facts)
        return self._names[key]

    def _read_work(self, index: int, facts: dict[str, Any]) -> Work | None:
        if not facts["work_read_ns"]:
            return None
        callback, task, scene = (self._text(index, facts, name) for name in ("callback", "task", "scene"))
        again = read_slot_facts(self._source, self._slot_section, index)
        if _names_key(index, again) != _names_key(index, facts):
            return None
        return Work(callback=callback or task, task=task, scene=scene)

    def _text(self, index: int, facts: dict[str, Any], name: str) -> str | None:
        """As `SlotHeap.text`, without a copy of the slot."""
        offset, size = layout.REF.struct.unpack(facts[name])
        end = min(facts["heap_used"], self._slot_section.stride)
        if not (layout.SLOT_HEAP_OFFSET <= offset <= end - size):
            return None
        raw = self._source.read(self._slot_section.at(index) + offset, min(size, layout.STRING_MAX))
        return raw.decode("utf-8", "replace") or None


def _with_present(
    reading: LaneReading, fields: dict[str, Any], before: bytes, after: bytes, clock: TickClock
) -> LaneReading:
    """With what the thread is in. An epoch that is the same before and after belongs to the begin that was
    read between them (native/core/lane/lane.h)."""
    epoch, turn = _word(after, _EPOCH), _word(after, _TURN_EPOCH)
    in_callback = epoch & 1 and epoch == _word(before, _EPOCH)
    in_turn = turn & 1 and turn == _word(before, _TURN_EPOCH)
    return replace(
        reading,
        allowance_ns=lane_allowance_ns(fields, clock) if in_callback else 0,
        callback_since_ns=clock.instant_ns(fields["begin"]) if in_callback else None,
        turn_since_ns=clock.instant_ns(fields["turn_rest"] or fields["turn_begin"]) if in_turn else None,
        turn_callbacks=bounded(fields["turn_callbacks"]) if in_turn else 0,
    )


def _latest_stall_ns(fields: dict[str, Any], after: bytes, clock: TickClock) -> int | None:
    """Length in ns of the stall in the lane's latest record. None: there is no record that is whole (the same
    in two copies) and of the lane's present owner."""
    count = fields["ended_count"]
    at = (count - 1) % layout.ENDED_COUNT * layout.ENDED.size
    raw = fields["ended"][at : at + layout.ENDED.size]
    begin = layout.LANE.offsets["ended"] + at
    if not count or raw != after[begin : begin + layout.ENDED.size]:
        return None
    ended = layout.ENDED.read(raw)
    is_sound = ended["sequence"] == count and ended["begin"] <= ended["end"]
    if not is_sound or clock.instant_ns(ended["end"]) < fields["opened_ns"]:
        return None
    return clock.duration_ns(ended["end"] - ended["begin"])


def _each_once(slots: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, dict[str, Any]]]:
    """Without the earlier place of a stall that has just moved, which may be in both."""
    latest: dict[tuple[bool, int], tuple[int, dict[str, Any]]] = {}
    for index, facts in slots:
        goes_on = facts["state"] in _GOING_ON
        key = goes_on, facts["serial"] if goes_on else index
        if key not in latest or latest[key][1]["last_look_ns"] < facts["last_look_ns"]:
            latest[key] = index, facts
    return sorted(latest.values(), key=lambda one: one[0])


def _stalls(slots: Sequence[tuple[int, dict[str, Any]]]) -> tuple[SlotGlance, ...]:
    """Those that are stalls: over, or beyond the threshold. Work that ended in time leaves no end."""
    return tuple(
        SlotGlance(
            index=index,
            serial=bounded(facts["serial"]),
            lane=bounded(facts["lane"]),
            lane_generation=bounded(facts["lane_generation"]),
            level=min(bounded(facts["level"]), _LARGEST_LEVEL),
            begin_ns=bounded(facts["begin_ns"] or facts["turn_begin_ns"]),
            end_ns=bounded(facts["end_ns"]) or None,
        )
        for index, facts in slots
        if facts["end_ns"] or facts["state"] == SlotState.STALL
    )


def _names_key(index: int, facts: dict[str, Any]) -> tuple[int, ...]:
    refs = (facts[name] for name in ("callback", "task", "scene"))
    return index, facts["serial"], facts["work_read_ns"], *(int.from_bytes(ref, "little") for ref in refs)


def _in_turn(raw: bytes) -> bool:
    return bool((_word(raw, _EPOCH) | _word(raw, _TURN_EPOCH)) & 1)


def _word(raw: bytes, at: int) -> int:
    return int.from_bytes(raw[at : at + 8], "little")
