"""Stalls: what a slot says, joined with its lane: was it a stall, of what, and when did it end?

The process may have died between any two stores. The program thread writes its `ended` record before
it moves on to the next epoch, so: a record settles the matter; a thread that has moved on without one
did not stall; a thread that has not moved on is in it still, or died in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from loopcanary.flight.format import ENDED_COUNT, EndedKind, SlotState
from loopcanary.flight.header import LARGEST, bounded
from loopcanary.flight.lanes import EndedStall, text_of
from loopcanary.flight.slots import SlotCopy
from loopcanary.late_dataclass import dataclass
from loopcanary.model import IssueKind, StallEvidence, StallScope

_UNSLOTTED_SERIAL: Final = 1 << 56
HANGS: Final = {EndedKind.BOOT: IssueKind.BOOT_HANG, EndedKind.EXIT: IssueKind.EXIT_HANG}
"""Slots that are about a program that does not start or end."""
_FIRST_TURN: Final = 1
"""A lane counts its turns by their begins and ends, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneView:
    """The lane that a slot is about, while it still has the same owner."""

    epoch: int
    turn_epoch: int
    rest_ns: int | None
    """When the running turn's last stalled or granted callback ended; None: it had none."""
    allowance_ns: int
    """What `expect` grants to the callback of `epoch`."""
    ended_seen: int
    """Number of the last record that the watchdog has dealt with."""
    ended: Sequence[EndedStall]
    """Records of stalls that ended, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The work that was too long, with its begin and end. `record`: what its own thread wrote at the end."""

    scope: StallScope
    begin_ns: int
    end_ns: int | None
    record: EndedStall | None = None


def settle(
    slot: SlotCopy, lane: LaneView | None, *, faults: bool = False, hangs: bool = False
) -> Extent | None:
    """The work of the slot's stall; None if it was not a stall. `lane` is None once it has another owner.
    `faults`, `hangs`: a fault in no turn is something, too, and
    so is a program that does not start or end."""
    extent = _as_slot_says(slot)
    if extent.scope is StallScope.THREAD:
        is_wanted = hangs if slot.facts["kind"] in HANGS else faults and extent.end_ns is None
        return extent if is_wanted else None
    if slot.state == SlotState.ENDED or extent.end_ns is not None:
        return extent if extent.end_ns is not None else _ended_unseen(slot, extent)
    record = _find_record(slot, extent, lane) if lane is not None else None
    if record is not None and lane is not None:
        if record.sequence <= lane.ended_seen:
            # It is in another slot: the watchdog looked once more before the thread had moved on.
            return None
        return Extent(scope=record.scope, begin_ns=record.begin_ns, end_ns=record.end_ns, record=record)
    if lane is None or _records_lost(lane, extent):
        return _ended_unseen(slot, extent) if slot.state == SlotState.STALL else None
    running = _still_running(slot, extent, lane)
    if running is None:
        return None
    if slot.state == SlotState.STALL and running == extent:
        return running
    return running if _too_long(slot, running, lane) else None


def slot_evidence(slot: SlotCopy, extent: Extent) -> StallEvidence:
    """The stall with its samples. Threads and collections are the caller's to add."""
    facts, record = slot.facts, extent.record
    turn = extent.scope is not StallScope.CALLBACK
    epoch = None if turn else (record.epoch if record else facts["epoch"])
    since, until = (extent.begin_ns, extent.end_ns or LARGEST) if turn else (0, LARGEST)
    samples = slot.samples(since, until, epoch)
    # Of a callback, the tally of its turn is not evidence.
    contributors, without_name = slot.contributors() if turn else ((), 0)
    waiters, waiter_count = slot.waiters()
    seen = [bounded(facts["last_look_ns"]), extent.begin_ns, *(s.at_ns for s in samples[-1:])]
    return StallEvidence(
        serial=bounded(facts["serial"]),
        scope=extent.scope,
        tid=bounded(facts["tid"]),
        loop_kind=slot.loop_kind,
        thread_name=slot.thread_name,
        begin_ns=extent.begin_ns,
        end_ns=extent.end_ns,
        last_look_ns=max(seen),
        threshold_ns=bounded(facts["threshold_ns"]),
        names=slot.names(),
        scene=slot.scene(),
        samples=samples,
        sample_interval_ns=bounded(facts["interval_ns"]),
        samples_dropped=slot.dropped(),
        allowance_ns=bounded(facts["allowance_ns"]),
        turn_begin_ns=(record.turn_begin_ns if record else bounded(facts["turn_begin_ns"])) or None,
        turn_callbacks=record.turn_callbacks if record else bounded(facts["turn_callbacks"]),
        turn_callback_ns=record.turn_callback_ns if record else bounded(facts["turn_callback_ns"]),
        longest_callback_ns=record.longest_ns if record else bounded(facts["longest_ns"]),
        end_cpu_ns=record.cpu_ns if record else bounded(facts["end_cpu_ns"]) or None,
        queue_ns=record.queue_ns if record else bounded(facts["queue_ns"]),
        first_turn=(record.turn_epoch if record else facts["turn_epoch"]) == _FIRST_TURN,
        before=slot.before(extent.begin_ns),
        host=slot.hosts(),
        contributors=contributors,
        contributors_from_ns=bounded(facts["contributors_from_ns"]) or None if turn else None,
        contributors_dropped=without_name,
        waiters=waiters,
        waiter_count=waiter_count,
        circle=slot.circle(),
        thread_names=slot.thread_names(),
        hang=HANGS.get(facts["kind"]),
    )


def record_evidence(record: EndedStall, lane: dict[str, Any], threshold_ns: int) -> StallEvidence:
    """A stall of which nothing but its thread's own record exists: exact, without samples.

    Its serial is made of lane and sequence, the same at every reading, and none that a slot has.
    """
    return StallEvidence(
        serial=_UNSLOTTED_SERIAL | record.lane << 40 | record.sequence & 0xFF_FFFF_FFFF,
        scope=record.scope,
        tid=bounded(lane["tid"]),
        loop_kind=text_of(lane["loop_kind"]),
        thread_name=text_of(lane["thread_name"]),
        begin_ns=record.begin_ns,
        end_ns=record.end_ns,
        last_look_ns=record.end_ns,
        threshold_ns=threshold_ns,
        turn_begin_ns=record.turn_begin_ns or None,
        turn_callbacks=record.turn_callbacks,
        turn_callback_ns=record.turn_callback_ns,
        longest_callback_ns=record.longest_ns,
        end_cpu_ns=record.cpu_ns,
        queue_ns=record.queue_ns,
        first_turn=record.turn_epoch == _FIRST_TURN,
    )


def of_slot(facts: Mapping[str, Any], records: Sequence[EndedStall]) -> Sequence[EndedStall]:
    """The records, of any lane, whose stall a slot holds, even one that was drained and freed. One that has
    not ended holds at most one of them."""
    found = [
        one
        for one in records
        if (facts["lane"], facts["lane_generation"]) == (one.lane, one.lane_generation)
        and _is_of_work(facts, one, facts["begin_ns"] or facts["turn_begin_ns"])
    ]
    return found if facts["end_ns"] else found and [_nearest(facts, found)]


def _as_slot_says(slot: SlotCopy) -> Extent:
    facts = slot.facts
    turn = facts["kind"] == EndedKind.TURN or not facts["epoch"]
    scope = StallScope.TURN if turn else StallScope.CALLBACK
    begin_ns = facts["begin_ns"] or facts["turn_begin_ns"]
    end_ns = facts["end_ns"]
    return Extent(
        scope=StallScope.THREAD if facts["kind"] in (EndedKind.FAULT, *HANGS) else scope,
        begin_ns=bounded(begin_ns),
        end_ns=bounded(max(begin_ns, end_ns)) if end_ns else None,
    )


def _ended_unseen(slot: SlotCopy, extent: Extent) -> Extent:
    """The extent of a stall that is over, and of which nothing says when: it lasted at least to the last
    look."""
    end_ns = max(extent.begin_ns, bounded(slot.facts["last_look_ns"]))
    return Extent(scope=extent.scope, begin_ns=extent.begin_ns, end_ns=end_ns)


def _find_record(slot: SlotCopy, extent: Extent, lane: LaneView) -> EndedStall | None:
    """The record of the slot's callback, or else that of the part of its turn with most of the slot's time.

    Which of a turn's work is too long shows at its end. So a slot that was opened for a callback can be
    settled by its turn's record, and the other way round. What the watchdog has dealt with has another slot.
    """
    for record in lane.ended:
        if extent.scope is StallScope.CALLBACK and _is_callback(slot.facts, record):
            return record
    found = [
        one
        for one in lane.ended
        if one.sequence > lane.ended_seen and _is_of_work(slot.facts, one, extent.begin_ns)
    ]
    return _nearest(slot.facts, found) if found else None


_JITTER_NS: Final = 100_000
"""Instants that were made of ticks at different times differ by less."""


def _is_callback(facts: Mapping[str, Any], record: EndedStall) -> bool:
    return record.scope is StallScope.CALLBACK and bool(facts["epoch"] == record.epoch)


def _is_of_work(facts: Mapping[str, Any], record: EndedStall, begin_ns: int) -> bool:
    """Whether it is of the slot's callback, or of a part of its turn that the slot was about. Such parts, and
    callbacks that were judged alone, follow one another."""
    if facts["kind"] == EndedKind.CALLBACK and record.scope is StallScope.CALLBACK:
        return _is_callback(facts, record)
    if not record.turn_epoch or facts["turn_epoch"] != record.turn_epoch:
        return False
    return _common_ns(facts, record, begin_ns) > _JITTER_NS


def _nearest(facts: Mapping[str, Any], records: Sequence[EndedStall]) -> EndedStall:
    begin_ns = facts["begin_ns"] or facts["turn_begin_ns"]
    return max(records, key=lambda one: _common_ns(facts, one, begin_ns))


def _common_ns(facts: Mapping[str, Any], record: EndedStall, begin_ns: int) -> int:
    end_ns = facts["end_ns"] or facts["last_look_ns"]
    return int(min(end_ns, record.end_ns) - max(begin_ns, record.begin_ns))


def _records_lost(lane: LaneView, extent: Extent) -> bool:
    """Whether the ring has been written round since the stall began."""
    return len(lane.ended) == ENDED_COUNT and lane.ended[0].begin_ns > extent.begin_ns


def _still_running(slot: SlotCopy, extent: Extent, lane: LaneView) -> Extent | None:
    """What of the slot's work the thread is in still: the callback, or at least its turn."""
    facts = slot.facts
    if extent.scope is StallScope.CALLBACK and lane.epoch == facts["epoch"]:
        return extent
    if not facts["turn_epoch"] or lane.turn_epoch != facts["turn_epoch"]:
        return None
    begin_ns = lane.rest_ns or bounded(facts["turn_begin_ns"]) or extent.begin_ns
    return Extent(scope=StallScope.TURN, begin_ns=begin_ns, end_ns=None)


def _too_long(slot: SlotCopy, extent: Extent, lane: LaneView) -> bool:
    limit_ns = slot.facts["threshold_ns"]
    if extent.scope is StallScope.CALLBACK:
        limit_ns = max(limit_ns, slot.facts["allowance_ns"], lane.allowance_ns)
    return bool(slot.facts["last_look_ns"] - extent.begin_ns > limit_ns)
