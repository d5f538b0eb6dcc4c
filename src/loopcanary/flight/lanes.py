"""Lanes: the figures of each watched thread, what it does now, and the stalls it saw end itself."""

from __future__ import annotations

import struct
from typing import Any, Final

from loopcanary.flight import format as layout
from loopcanary.flight.format import EndedKind, LaneState
from loopcanary.flight.header import Section, TickClock, bounded
from loopcanary.flight.rings import whole_entries
from loopcanary.flight.source import ByteSource
from loopcanary.late_dataclass import dataclass
from loopcanary.model import LaneTotals, StallScope

_TRIES: Final = 4
_HIGH_WORDS: Final = (layout.LANE.offsets["busy_ns2_high"], layout.LANE.offsets["callback_ticks2_high"])
_BUCKETS: Final = struct.Struct(f"<{layout.HISTOGRAM_BUCKETS}Q")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedStall:
    """A stall as its own thread saw it end."""

    lane: int
    lane_generation: int
    sequence: int
    scope: StallScope
    epoch: int
    turn_epoch: int
    begin_ns: int
    end_ns: int
    turn_begin_ns: int
    turn_callbacks: int
    turn_callback_ns: int
    longest_ns: int
    cpu_ns: int | None
    queue_ns: int


def text_of(padded: bytes) -> str:
    return padded.partition(b"\0")[0].decode("utf-8", "replace")


def bucket_limit_ns(index: int) -> int:
    """Upper bound of a histogram bucket: 16 buckets an octave from 1.024 us; all below is bucket 0."""
    first = 1 << layout.HISTOGRAM_MIN_BITS
    if index == 0:
        return first
    octave, part = divmod(index - 1, 1 << layout.HISTOGRAM_SUB_BITS)
    return (first << octave) + ((part + 1) * (first << octave) >> layout.HISTOGRAM_SUB_BITS)


def read_lane(source: ByteSource, section: Section, index: int) -> dict[str, Any]:
    """All fields of one lane. Those that its thread stores together may be one turn apart."""
    at = section.at(index)
    data = b""
    for _ in range(_TRIES):
        data = source.read(at, layout.LANE.struct.size)
        # A carry between the two words of a sum of squares would be an error of 2^64.
        again = source.read(at, layout.LANE.struct.size)
        if not carried(data, again):
            break
    return layout.LANE.read(data)


def carried(one: bytes, another: bytes) -> bool:
    """Whether a sum of squares went from its low word into its high one between two copies of a lane."""
    return any(another[high : high + 8] != one[high : high + 8] for high in _HIGH_WORDS)


def lane_totals(fields: dict[str, Any], index: int, clock: TickClock) -> LaneTotals | None:
    """The lane's sums; None for a lane that was never given out."""
    if fields["state"] not in (LaneState.ACTIVE, LaneState.CLOSED):
        return None
    longest_ns = clock.duration_ns(fields["longest_turn"])
    in_turn = fields["state"] == LaneState.ACTIVE and fields["turn_epoch"] & 1
    opened_ns = bounded(fields["opened_ns"])
    return LaneTotals(
        lane=index,
        generation=bounded(fields["generation"]),
        tid=bounded(fields["tid"]),
        loop_kind=text_of(fields["loop_kind"]),
        thread_name=text_of(fields["thread_name"]),
        opened_ns=opened_ns,
        closed_ns=bounded(fields["closed_ns"]) if fields["state"] == LaneState.CLOSED else None,
        turns=bounded(fields["turns"]),
        callbacks=bounded(fields["callbacks"]),
        busy_ns=clock.duration_ns(fields["busy_ticks"]),
        busy_ns_squared=(fields["busy_ns2_high"] << 64) + fields["busy_ns2_low"],
        longest_turn_ns=longest_ns,
        queue_ns_total=clock.duration_ns(fields["queue_ticks_total"]),
        queue_ns_max=clock.duration_ns(fields["queue_ticks_max"]),
        histogram=_histogram(fields["turn_histogram"], longest_ns),
        slices_congested=bounded(fields["slices_congested"]),
        callback_ns=clock.duration_ns(fields["callback_ticks"]),
        callback_ns_squared=clock.square_ns2(
            (fields["callback_ticks2_high"] << 64) + fields["callback_ticks2_low"]
        ),
        stalls=bounded(fields["stalls"]),
        stalled_ns=clock.duration_ns(fields["stalled_ticks"]),
        gc_ns=bounded(fields["gc_ns"]),
        on_cpu_ns=_since_opening(fields, "on_cpu"),
        run_queue_ns=_since_opening(fields, "run_queue"),
        busy_since_ns=clock.instant_ns(fields["turn_begin"]) if in_turn else None,
        turned_ns=clock.instant_ns(fields["turn_begin"]) if fields["turn_epoch"] else None,
    )


def _since_opening(fields: dict[str, Any], name: str) -> int | None:
    """What the thread's counter gained in the lane's life. None if the kernel did not give it at the
    opening, or the watchdog has not read it since: it reads a few lanes only."""
    # The thread that opened the lane was on a CPU before, and has been since.
    if not 0 < fields["on_cpu_begin_ns"] < fields["on_cpu_ns"]:
        return None
    return bounded(fields[f"{name}_ns"] - fields[f"{name}_begin_ns"])


def lane_allowance_ns(fields: dict[str, Any], clock: TickClock) -> int:
    """What `expect` grants to the callback that runs, 0 for nothing."""
    return clock.duration_ns(fields["allowance"]) if fields["allowance_epoch"] == fields["epoch"] else 0


def read_ended(source: ByteSource, section: Section, index: int, clock: TickClock) -> list[EndedStall]:
    """The last stalls of the lane's present owner, oldest first."""
    at = section.at(index)
    ring_at = at + layout.LANE.offsets["ended"]
    owner = _read_owner(source, at)
    entries = list(whole_entries(source, ring_at, layout.ENDED, layout.ENDED.size, layout.ENDED_COUNT))
    if _read_owner(source, at) != owner:
        return []  # given to another thread meanwhile
    generation, opened_ns = owner
    records = [_ended(fields, index, generation, clock) for fields in entries if _is_sound(fields)]
    return [record for record in records if record.end_ns >= opened_ns]


def _is_sound(fields: dict[str, Any]) -> bool:
    return fields["kind"] in (EndedKind.CALLBACK, EndedKind.TURN) and bool(fields["begin"] <= fields["end"])


def _ended(fields: dict[str, Any], lane: int, generation: int, clock: TickClock) -> EndedStall:
    return EndedStall(
        lane=lane,
        lane_generation=generation,
        sequence=fields["sequence"],
        scope=StallScope.TURN if fields["kind"] == EndedKind.TURN else StallScope.CALLBACK,
        epoch=fields["epoch"],
        turn_epoch=fields["turn_epoch"],
        begin_ns=clock.instant_ns(fields["begin"]),
        end_ns=clock.instant_ns(fields["end"]),
        turn_begin_ns=clock.instant_ns(fields["turn_begin"]),
        turn_callbacks=bounded(fields["turn_callbacks"]),
        turn_callback_ns=clock.duration_ns(fields["turn_callback_ticks"]),
        longest_ns=clock.duration_ns(fields["longest_ticks"]),
        cpu_ns=bounded(fields["cpu_ns"]) or None,
        queue_ns=clock.duration_ns(fields["queue_ticks"]),
    )


def _read_owner(source: ByteSource, at: int) -> tuple[int, int]:
    """(generation, when it was opened) of the lane at this offset."""
    fields = layout.LANE.read(source.read(at, layout.LANE.struct.size))
    return fields["generation"], fields["opened_ns"]


def _histogram(raw: bytes, longest_ns: int) -> tuple[tuple[int, int], ...]:
    counts = _BUCKETS.unpack(raw)
    filled = [(bucket_limit_ns(index), bounded(count)) for index, count in enumerate(counts) if count]
    if counts[-1]:  # it takes all that is longer, too
        filled[-1] = (max(filled[-1][0], longest_ns), filled[-1][1])
    return tuple(filled)
