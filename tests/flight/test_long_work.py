"""Long work before a stall, from the ring behind its lane, and the history of the time in between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.building.evidence import BEGIN, MS, stall
from tests.building.flight_file import FlightBuilder

from loopcanary.flight import FlightFile
from loopcanary.flight import format as layout
from loopcanary.flight.format import EndedKind, LaneState, SectionKind
from loopcanary.model import ShortWork, StallEvidence, StallScope, WorkKind

LIMIT = 2 * MS


@dataclass
class Recorder:
    """What native/core/lane/long_work.c records of a lane, in nanoseconds for ticks: turns of callbacks,
    told by their lengths, with waits in between."""

    flight: FlightBuilder
    lane: int
    now: int
    turns: int = 0
    callbacks: int = 0
    busy: int = 0
    long: int = 0
    epoch: int = 0

    def turn(self, *lengths: int, beside: int = 0) -> None:
        """`beside`: the turn's time before its first callback."""
        begin, known = self.now, 0
        self.now += beside
        for number, length in enumerate(lengths):
            self.epoch += 2
            if length > LIMIT:
                known += length
                self._record(
                    EndedKind.CALLBACK,
                    self.epoch - 1,
                    self.now,
                    length,
                    callbacks=1,
                    longest_ticks=length,
                    callbacks_before=self.callbacks + number,
                    busy_ticks_before=self.busy + self.now - begin,
                    name=f"work {self.epoch}".encode(),
                )
            self.now += length
        took = self.now - begin
        if took - known > LIMIT:
            self._record(
                EndedKind.TURN,
                2 * self.turns + 1,
                begin,
                took,
                callbacks=len(lengths),
                longest_ticks=max(lengths, default=0),
                callbacks_before=self.callbacks,
                busy_ticks_before=self.busy,
            )
        self.turns, self.callbacks, self.busy = (
            self.turns + 1,
            self.callbacks + len(lengths),
            self.busy + took,
        )

    def wait(self, length: int) -> None:
        self.now += length

    def _record(self, kind: EndedKind, epoch: int, begin: int, length: int, **fields: Any) -> None:
        self.long += 1
        self.flight.add_long_work(
            self.lane,
            sequence=self.long,
            kind=kind,
            epoch=epoch,
            begin=begin,
            end=begin + length,
            turns_before=self.turns,
            **fields,
        )

    def stalled(self, **fields: Any) -> StallEvidence:
        """A callback begins right now, and goes on; it is the first of its turn."""
        self.flight.put_lane(
            self.lane,
            epoch=self.epoch + 1,
            turn_epoch=2 * self.turns + 1,
            begin=self.now,
            turn_begin=self.now,
            turns=self.turns,
            callbacks=self.callbacks,
            busy_ticks=self.busy,
            long_limit=LIMIT,
        )
        evidence = stall(
            begin_ns=self.now,
            end_ns=None,
            last_look_ns=self.now + 200 * MS,
            turn_begin_ns=self.now,
            samples=(),
        )
        self.flight.add_stall(
            evidence, lane=self.lane, epoch=self.epoch + 1, turn_epoch=2 * self.turns + 1, **fields
        )
        return read(self.flight)


def recorder(opened_ns: int = BEGIN) -> Recorder:
    flight = FlightBuilder()
    return Recorder(flight, flight.add_lane(opened_ns=opened_ns, long_limit=LIMIT), now=opened_ns)


def read(flight: FlightBuilder) -> StallEvidence:
    [(_, evidence)] = FlightFile(bytes(flight.data)).stalls()
    return evidence


def test_long_callbacks_have_names_and_short_work_between():
    lane = recorder()
    lane.turn(MS, MS // 2)
    lane.wait(10 * MS)
    lane.turn(5 * MS)
    lane.wait(30 * MS)
    lane.turn(MS)
    lane.turn(MS // 2, 7 * MS)
    lane.turn(MS // 4)
    lane.wait(3 * MS)
    evidence = lane.stalled()
    first, second = evidence.earlier
    assert evidence.earlier_from_ns == BEGIN
    assert (first.kind, first.name, first.task) == (WorkKind.CALLBACK, "work 6", None)
    assert (first.begin_ns, first.end_ns) == (BEGIN + 11 * MS + MS // 2, BEGIN + 16 * MS + MS // 2)
    assert first.short == ShortWork(turns=1, callbacks=2, busy_ns=MS + MS // 2, idle_ns=10 * MS)
    assert second.name == "work 12"
    assert second.short == ShortWork(turns=1, callbacks=2, busy_ns=MS + MS // 2, idle_ns=30 * MS)
    assert evidence.earlier_last == ShortWork(turns=1, callbacks=1, busy_ns=MS // 4, idle_ns=3 * MS)


def test_a_turn_holds_its_own_long_callbacks():
    lane = recorder()
    lane.turn(MS, MS, 9 * MS, MS, MS)
    lane.turn(MS)
    evidence = lane.stalled()
    turn, callback = evidence.earlier
    assert (turn.kind, turn.callbacks, turn.longest_ns, turn.name) == (WorkKind.TURN, 5, 9 * MS, None)
    assert turn.short == ShortWork(turns=0, callbacks=0, busy_ns=0, idle_ns=0)
    assert (callback.kind, callback.short) == (
        WorkKind.CALLBACK,
        ShortWork(turns=0, callbacks=2, busy_ns=2 * MS, idle_ns=0),
    )
    assert evidence.earlier_last == ShortWork(turns=1, callbacks=1, busy_ns=MS, idle_ns=0)


lengths = st.integers(min_value=0, max_value=3 * LIMIT)
events = st.lists(
    st.one_of(
        st.tuples(st.lists(lengths, max_size=6), lengths).map(lambda pair: ("turn", *pair)),
        st.integers(min_value=1, max_value=50 * MS).map(lambda ns: ("wait", ns)),
    ),
    max_size=24,
)


@given(events)
def test_all_time_and_callbacks_before_a_stall_count_once(history: list[Any]):
    lane = recorder()
    for kind, *what in history:
        if kind == "turn":
            lane.turn(*what[0], beside=what[1])
        else:
            lane.wait(*what)
    evidence = lane.stalled()
    outer, callbacks, busy, idle = [], 0, 0, 0
    within = 0
    for work in evidence.earlier:
        assert work.short is not None
        if outer and work.end_ns <= outer[-1].end_ns and outer[-1].kind is WorkKind.TURN:
            within += work.callbacks + work.short.callbacks
            assert within <= outer[-1].callbacks
            assert (work.short.idle_ns, work.short.turns) == (0, 0)
            continue
        outer.append(work)
        within = 0
        callbacks += work.callbacks + work.short.callbacks
        busy += work.end_ns - work.begin_ns + work.short.busy_ns
        idle += work.short.idle_ns
    assert evidence.earlier_last is not None
    assert callbacks + evidence.earlier_last.callbacks == lane.callbacks
    assert busy + evidence.earlier_last.busy_ns == lane.busy
    assert busy + idle + evidence.earlier_last.busy_ns + evidence.earlier_last.idle_ns == lane.now - BEGIN
    # Two of the same begin: a turn, and its first callback.
    assert [work.begin_ns for work in evidence.earlier] == sorted(work.begin_ns for work in evidence.earlier)


def test_a_ring_that_has_gone_round_says_where_it_begins():
    lane = recorder()
    for _ in range(layout.LONG_WORK_COUNT + 10):
        lane.turn(5 * MS)
        lane.turn(MS)
    evidence = lane.stalled()
    assert len(evidence.earlier) == layout.LONG_WORK_COUNT
    assert evidence.earlier_from_ns == evidence.earlier[0].begin_ns == BEGIN + 60 * MS
    # What was before the first one is not known any more.
    assert evidence.earlier[0].short is None
    assert evidence.earlier[1].short == ShortWork(turns=1, callbacks=1, busy_ns=MS, idle_ns=0)


def test_an_entry_that_is_being_written_is_no_short_work():
    lane = recorder()
    for _ in range(4):
        lane.turn(5 * MS)
    at = lane.flight.long_work_at(lane.lane, 3)
    lane.flight.data[at : at + 8] = bytes(8)
    evidence = lane.stalled()
    assert [work.short is None for work in evidence.earlier] == [False, False, True]


def test_a_stall_that_is_over_is_not_before_itself():
    lane = recorder()
    lane.turn(5 * MS)
    lane.wait(MS)
    begin = lane.now
    lane.turn(150 * MS)
    lane.turn(5 * MS)
    evidence = stall(begin_ns=begin, end_ns=begin + 150 * MS, turn_begin_ns=begin, samples=())
    lane.flight.add_stall(evidence, lane=lane.lane, epoch=3, turn_epoch=3)
    lane.flight.put_lane(lane.lane, epoch=lane.epoch, turn_epoch=2 * lane.turns, turns=lane.turns)
    found = read(lane.flight)
    assert [work.name for work in found.earlier] == ["work 2"]
    assert found.earlier_last == ShortWork(turns=0, callbacks=0, busy_ns=0, idle_ns=MS)


def test_a_turn_that_stalled_is_not_before_itself():
    lane = recorder()
    lane.turn(5 * MS)
    begin = lane.now
    lane.turn(*[MS] * 150, 5 * MS)
    evidence = stall(
        scope=StallScope.TURN, begin_ns=begin, end_ns=begin + 155 * MS, turn_begin_ns=begin, samples=()
    )
    lane.flight.add_stall(evidence, lane=lane.lane, epoch=0, turn_epoch=3)
    lane.flight.put_lane(lane.lane, epoch=lane.epoch, turn_epoch=2 * lane.turns, turns=lane.turns)
    found = read(lane.flight)
    assert [work.name for work in found.earlier] == ["work 2"]
    assert found.earlier_last == ShortWork(turns=0, callbacks=0, busy_ns=0, idle_ns=0)


def test_a_refined_clock_keeps_work_before_its_stall():
    lane = recorder()
    lane.turn(5 * MS)
    begin = lane.now
    lane.turn(150 * MS)
    seen = begin - 3_000  # as a slot's times are made, by a pairing of its own
    evidence = stall(begin_ns=seen, end_ns=seen + 150 * MS, turn_begin_ns=seen, samples=())
    lane.flight.add_stall(evidence, lane=lane.lane, epoch=3, turn_epoch=3)
    lane.flight.put_lane(lane.lane, epoch=lane.epoch, turn_epoch=2 * lane.turns)
    [work] = read(lane.flight).earlier
    assert (work.begin_ns, work.end_ns) == (seen - 5 * MS, seen)


@pytest.mark.parametrize(
    "lane_fields",
    [{"generation": 2}, {"state": LaneState.FREE}, {"long_limit": 0}],
    ids=["another thread has the lane", "the lane is being given out", "a writer that records none"],
)
def test_long_work_of_another_lane_is_not_the_stalls(lane_fields: dict[str, int]):
    lane = recorder()
    lane.turn(5 * MS)
    evidence = stall(begin_ns=lane.now, end_ns=lane.now + 150 * MS, samples=())
    lane.flight.add_stall(evidence, lane=lane.lane, epoch=3, turn_epoch=3)
    lane.flight.put_lane(lane.lane, **lane_fields)
    found = read(lane.flight)
    assert (found.earlier, found.earlier_from_ns, found.earlier_last) == ((), None, None)


def test_an_earlier_owners_long_work_is_left_out():
    lane = recorder()
    for _ in range(4):
        lane.turn(5 * MS)
    lane.long = 2
    lane.flight.put_lane(lane.lane, long_count=2)
    assert [work.name for work in lane.stalled().earlier] == ["work 2", "work 4"]


def test_a_file_without_a_ring_has_no_long_work():
    lane = recorder()
    lane.turn(5 * MS)
    lane.flight.put_section(SectionKind.LANES, stride=layout.LONG_WORK_OFFSET, count=1)
    found = lane.stalled()
    assert (found.earlier, found.earlier_from_ns, found.earlier_last) == ((), None, None)


@given(st.binary(max_size=layout.LONG_WORK_COUNT * layout.LONG_WORK.size), st.integers(0, 80))
def test_any_ring_is_read_in_order_and_in_bounds(noise: bytes, count: int):
    lane = recorder()
    for _ in range(3):
        lane.turn(5 * MS)
    at = lane.flight.long_work_at(lane.lane, 1)
    lane.flight.data[at : at + len(noise)] = noise
    lane.flight.put_lane(lane.lane, long_count=count)
    found = lane.stalled()
    assert len(found.earlier) <= layout.LONG_WORK_COUNT
    begins = [work.begin_ns for work in found.earlier]
    assert begins == sorted(begins)
    for work in found.earlier:
        assert 0 <= work.begin_ns <= work.end_ns
        assert work.short is None or min(work.short.callbacks, work.short.busy_ns, work.short.idle_ns) >= 0
        assert replace(work, name=work.name) == work


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "kind": st.sampled_from([0, 1, 2, 3]),
                **{
                    name: st.one_of(st.integers(0, (1 << 64) - 1), st.integers(BEGIN, BEGIN + 100 * MS))
                    for name in (
                        *("begin", "end", "epoch", "callbacks", "longest_ticks", "turns_before"),
                        *("busy_ticks_before", "callbacks_before"),
                    )
                },
                "name": st.binary(max_size=layout.LONG_NAME_BYTES),
            }
        ),
        max_size=12,
    )
)
def test_entries_that_lie_are_read_in_bounds(entries: list[dict[str, Any]]):
    lane = recorder()
    for number, fields in enumerate(entries):
        lane.flight.add_long_work(lane.lane, sequence=number + 1, **fields)
    found = lane.stalled()
    assert len(found.earlier) <= len(entries)
    for work in found.earlier:
        assert work.begin_ns <= work.end_ns
        assert work.short is None or 0 <= work.short.turns < 1 << 64
