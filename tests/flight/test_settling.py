"""A process can die between any two stores: what the slot, the lane and its records then say together.

The callback has epoch 5 in turn 7, began at 0 ms and has a threshold of 100 ms; times are ms after its
begin. An even epoch follows an odd one when the work is over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.building.evidence import BEGIN, MS, going_on, stall, turn
from tests.building.flight_file import FlightBuilder

from loopcanary.flight import FlightFile
from loopcanary.flight.format import LaneState, SlotState
from loopcanary.model import StallEvidence, StallScope

CALLBACK, TURN = StallScope.CALLBACK, StallScope.TURN


@dataclass(frozen=True)
class Story:
    """What the file says, and what the reader makes of that: (scope, begin, end) or None."""

    title: str
    last_look: int
    expected: tuple[StallScope, int, int | None] | None
    state: SlotState = SlotState.STALL
    scope: StallScope = CALLBACK
    turn_begin: int = 0
    lane: dict[str, Any] = field(default_factory=dict)
    records: tuple[dict[str, Any], ...] = ()
    slot: dict[str, Any] = field(default_factory=dict)


def record(
    begin: int, end: int, *, epoch: int = 5, turn_epoch: int = 7, scope: StallScope = CALLBACK
) -> dict[str, Any]:
    return {
        "begin": BEGIN + begin * MS,
        "end": BEGIN + end * MS,
        "epoch": epoch,
        "turn_epoch": turn_epoch,
        "scope": scope,
    }


IN_CALLBACK = {"epoch": 5, "turn_epoch": 7}
NEXT_CALLBACK = {"epoch": 7, "turn_epoch": 7}
IDLE = {"epoch": 6, "turn_epoch": 8}

STORIES = [
    Story(
        "a stall that goes on has no end",
        last_look=150,
        lane=IN_CALLBACK,
        expected=(CALLBACK, 0, None),
    ),
    Story(
        "a stall whose thread recorded its end before anyone looked has that end",
        last_look=150,
        lane=IDLE,
        records=(record(0, 170),),
        expected=(CALLBACK, 0, 170),
    ),
    Story(
        "the record is believed even before the epoch moves",
        last_look=150,
        lane=IN_CALLBACK,
        records=(record(0, 170),),
        expected=(CALLBACK, 0, 170),
    ),
    Story(
        "a look before the thread moved on makes no second stall of one that another slot has",
        last_look=171,
        lane=IN_CALLBACK | {"ended_seen": 1},
        records=(record(0, 170),),
        expected=None,
    ),
    Story(
        "a record of an earlier callback says nothing of this one",
        last_look=150,
        lane=IN_CALLBACK,
        records=(record(-400, -200, epoch=3, turn_epoch=5),),
        expected=(CALLBACK, 0, None),
    ),
    Story(
        "work below its threshold at the last look is no stall",
        state=SlotState.OPEN,
        last_look=60,
        lane=IN_CALLBACK,
        expected=None,
    ),
    Story(
        "work beyond its threshold at the last look is one, though nobody came to say so",
        state=SlotState.OPEN,
        last_look=101,
        lane=IN_CALLBACK,
        expected=(CALLBACK, 0, None),
    ),
    Story(
        "work that was granted more time is no stall before that is over",
        state=SlotState.OPEN,
        last_look=150,
        lane=IN_CALLBACK | {"allowance": 200 * MS, "allowance_epoch": 5},
        expected=None,
    ),
    Story(
        "time granted to an earlier callback is not this one's",
        state=SlotState.OPEN,
        last_look=150,
        lane=IN_CALLBACK | {"allowance": 200 * MS, "allowance_epoch": 3},
        expected=(CALLBACK, 0, None),
    ),
    Story(
        "work that was open when last looked at and recorded its end as a stall is one",
        state=SlotState.OPEN,
        last_look=60,
        lane=IDLE,
        records=(record(0, 140),),
        expected=(CALLBACK, 0, 140),
    ),
    Story(
        "work that was open when last looked at and ended without a record was no stall",
        state=SlotState.OPEN,
        last_look=60,
        lane=IDLE,
        expected=None,
    ),
    Story(
        "work that passed the threshold and ended without a record had been granted the time",
        last_look=150,
        lane=IDLE,
        expected=None,
    ),
    Story(
        "a callback that ended without a record leaves its turn, which may be too long by now",
        state=SlotState.OPEN,
        last_look=60,
        turn_begin=-90,
        lane=NEXT_CALLBACK,
        expected=(TURN, -90, None),
    ),
    Story(
        "such a turn is no stall while it is below the threshold",
        state=SlotState.OPEN,
        last_look=60,
        turn_begin=-30,
        lane=NEXT_CALLBACK,
        expected=None,
    ),
    Story(
        "such a turn is judged from the end of a callback that was a stall",
        state=SlotState.OPEN,
        last_look=60,
        turn_begin=-400,
        lane=NEXT_CALLBACK | {"turn_rest": BEGIN - 10 * MS},
        records=(record(-400, -10, epoch=3),),
        expected=None,
    ),
    Story(
        "such a turn is a stall once the time since that callback is too long",
        state=SlotState.OPEN,
        last_look=60,
        turn_begin=-400,
        lane=NEXT_CALLBACK | {"turn_rest": BEGIN - 90 * MS},
        records=(record(-400, -90, epoch=3),),
        expected=(TURN, -90, None),
    ),
    Story(
        "a slot of a turn's later part is settled by that part's record",
        scope=TURN,
        last_look=150,
        lane=IDLE | {"ended_seen": 1},
        records=(record(-200, 0, epoch=3), record(0, 160, scope=TURN)),
        expected=(TURN, 0, 160),
    ),
    Story(
        "a slot opened for a callback is settled by the record of its turn",
        state=SlotState.OPEN,
        last_look=60,
        turn_begin=-90,
        lane=IDLE,
        records=(record(-90, 80, scope=TURN),),
        expected=(TURN, -90, 80),
    ),
    Story(
        "a slot opened for a turn is settled by the record of the callback that held it",
        scope=TURN,
        state=SlotState.OPEN,
        last_look=60,
        lane=IDLE,
        records=(record(20, 180, epoch=9),),
        expected=(CALLBACK, 20, 180),
    ),
    Story(
        "a turn that goes on has no end",
        scope=TURN,
        last_look=150,
        lane={"epoch": 11, "turn_epoch": 7},
        expected=(TURN, 0, None),
    ),
    Story(
        "a stall of a lane that has another owner lasted at least to the last look",
        last_look=150,
        lane=IN_CALLBACK | {"generation": 2},
        expected=(CALLBACK, 0, 150),
    ),
    Story(
        "work below its threshold in a lane that has another owner was no stall",
        state=SlotState.OPEN,
        last_look=150,
        lane=IN_CALLBACK | {"generation": 2},
        expected=None,
    ),
    Story(
        "records of the lane's earlier owner are not believed",
        last_look=150,
        lane=IN_CALLBACK | {"opened_ns": BEGIN - 5 * MS},
        records=(record(-50, -10),),
        expected=(CALLBACK, 0, None),
    ),
    Story(
        "a stall whose record was overwritten by sixteen later ones lasted at least to the last look",
        last_look=150,
        lane=IDLE | {"epoch": 99, "turn_epoch": 99},
        records=tuple(
            record(200 * i, 200 * i + 150, epoch=5 + 2 * i, turn_epoch=7 + 2 * i) for i in range(1, 17)
        ),
        expected=(CALLBACK, 0, 150),
    ),
    Story(
        "an end in the slot is the end, even before the state says so",
        last_look=170,
        lane=IDLE,
        slot={"end_ns": BEGIN + 170 * MS},
        expected=(CALLBACK, 0, 170),
    ),
    Story(
        "a slot that is over and has no end lasted at least to the last look",
        state=SlotState.ENDED,
        last_look=150,
        lane=IDLE,
        expected=(CALLBACK, 0, 150),
    ),
    Story(
        "an end before the begin is the begin",
        state=SlotState.ENDED,
        last_look=150,
        lane=IDLE,
        slot={"end_ns": BEGIN - 9},
        expected=(CALLBACK, 0, 0),
    ),
    Story(
        "a lane that does not exist says nothing",
        last_look=150,
        lane=IN_CALLBACK,
        slot={"lane": 1 << 40},
        expected=(CALLBACK, 0, 150),
    ),
]


def build(story: Story) -> tuple[FlightBuilder, int]:
    flight = FlightBuilder()
    lane = flight.add_lane(**story.lane)
    for sequence, fields in enumerate(story.records, 1):
        flight.add_ended(lane, sequence=sequence, **fields)
    make = turn if story.scope is TURN else stall
    evidence = make(
        end_ns=None, last_look_ns=BEGIN + story.last_look * MS, turn_begin_ns=BEGIN + story.turn_begin * MS
    )
    fields = {"lane": lane, **story.slot}
    slot = flight.add_stall(evidence, state=story.state, lane=lane)
    flight.put_slot(slot, **fields)
    return flight, slot


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.title)
def test_settling(story):
    flight, slot = build(story)

    evidence = FlightFile(bytes(flight)).slot_evidence(slot)

    assert extent(evidence) == story.expected


def extent(evidence: StallEvidence | None) -> tuple[StallScope, int, int | None] | None:
    if evidence is None:
        return None
    end = None if evidence.end_ns is None else (evidence.end_ns - BEGIN) // MS
    return evidence.scope, (evidence.begin_ns - BEGIN) // MS, end


def test_what_the_thread_recorded_replaces_what_the_watchdog_saw():
    flight = FlightBuilder()
    lane = flight.add_lane(**IDLE)
    exact = {
        "turn_begin": BEGIN - 2 * MS,
        "turn_callbacks": 9,
        "turn_callback_ticks": 180 * MS,
        "longest_ticks": 170 * MS,
        "cpu_ns": 66,
        "queue_ticks": 3 * MS,
    }
    flight.add_ended(lane, **record(0, 170), **exact)
    slot = flight.add_stall(going_on(), lane=lane)

    evidence = FlightFile(bytes(flight)).slot_evidence(slot)

    assert evidence is not None
    assert evidence == going_on(
        end_ns=BEGIN + 170 * MS,
        turn_begin_ns=BEGIN - 2 * MS,
        turn_callbacks=9,
        turn_callback_ns=180 * MS,
        longest_callback_ns=170 * MS,
        end_cpu_ns=66,
        queue_ns=3 * MS,
    )


def test_work_below_its_threshold_is_no_stall():
    flight = FlightBuilder()
    slot = flight.add_stall(going_on(last_look_ns=BEGIN + 45 * MS), state=SlotState.OPEN)
    assert FlightFile(bytes(flight)).slot_evidence(slot) is None


def test_stalls_that_are_known_are_left_out():
    flight = FlightBuilder()
    over, on = flight.add_stall(stall()), flight.add_stall(going_on(serial=4))
    file = FlightFile(bytes(flight))

    assert [(slot, evidence.serial) for slot, evidence in file.stalls()] == [(over, 3), (on, 4)]
    assert [slot for slot, _ in file.stalls(without={3})] == [on]


def test_a_freed_slot_holds_no_stall():
    flight = FlightBuilder()
    flight.add_stall(stall(), state=SlotState.FREE)

    assert FlightFile(bytes(flight)).stalls() == []


# ---- stalls that only their threads recorded ------------------------------------------------


def unslotted(flight: FlightBuilder) -> list[StallEvidence]:
    return FlightFile(bytes(flight)).unslotted_stalls()


def test_an_unsampled_stall_at_death_is_exact():
    flight = FlightBuilder(heartbeat_ns=BEGIN)
    lane = flight.add_lane(thread_name="ui", loop_kind="qt", tid=44)
    flight.add_ended(lane, **record(0, 250), turn_begin=BEGIN - MS, cpu_ns=77, turn_callbacks=1)

    (evidence,) = unslotted(flight)

    assert (evidence.scope, evidence.begin_ns, evidence.end_ns) == (CALLBACK, BEGIN, BEGIN + 250 * MS)
    assert (evidence.thread_name, evidence.loop_kind, evidence.tid) == ("ui", "qt", 44)
    assert (evidence.threshold_ns, evidence.turn_begin_ns, evidence.end_cpu_ns) == (100 * MS, BEGIN - MS, 77)
    assert evidence.samples == ()


def test_stalls_that_the_watchdog_has_seen_are_not_given_again():
    flight = FlightBuilder()
    lane = flight.add_lane(ended_seen=1)
    flight.add_ended(lane, sequence=1, **record(0, 250))
    flight.add_ended(lane, sequence=2, **record(280, 400, epoch=9, turn_epoch=11))

    assert [evidence.begin_ns for evidence in unslotted(flight)] == [BEGIN + 280 * MS]


@pytest.mark.parametrize("state", [SlotState.OPEN, SlotState.STALL, SlotState.ENDED, SlotState.FREE])
def test_stalls_with_a_slot_are_not_given_again(state):
    flight = FlightBuilder()
    lane = flight.add_lane(**IDLE)
    flight.add_ended(lane, **record(0, 250))
    flight.add_stall(stall(), lane=lane, state=state)

    assert unslotted(flight) == []


def test_unslotted_stalls_have_serials_of_their_own_that_stay():
    flight = FlightBuilder()
    for lane in (flight.add_lane(), flight.add_lane()):
        flight.add_ended(lane, sequence=1, **record(0, 250))
        flight.add_ended(lane, sequence=2, **record(300, 450, epoch=9, turn_epoch=11))
    serials = [evidence.serial for evidence in unslotted(flight)]

    assert len(set(serials)) == 4
    assert all(1 << 56 <= serial < 1 << 63 for serial in serials)
    assert serials == [evidence.serial for evidence in unslotted(flight)]


def test_records_of_free_lanes_are_nothing():
    flight = FlightBuilder()
    flight.add_ended(flight.add_lane(state=LaneState.FREE), **record(0, 250))

    assert unslotted(flight) == []


@pytest.mark.parametrize(
    "damage",
    [{"kind": 9}, {"end": BEGIN - 1}, {"sequence": 0}, {"sequence": 2}],
    ids=["of no kind", "over before it begins", "being written", "in the wrong place"],
)
def test_a_record_is_not_believed(damage):
    flight = FlightBuilder()
    lane = flight.add_lane()
    flight.add_ended(lane, **record(0, 250))
    flight.put_ended(lane, 0, **damage)

    assert unslotted(flight) == []
