"""What was written is what is read."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.building.anything import any_evidence
from tests.building.evidence import BEGIN, HOLDER, MS, going_on, reading, sample, stall, turn
from tests.building.flight_file import BOOT_ID, FlightBuilder, SlotBuilder, put

from loopcanary.flight import FlightFile
from loopcanary.flight import format as layout
from loopcanary.flight.format import (
    COUNTERS,
    HISTOGRAM_BUCKETS,
    ClockKind,
    LaneState,
    ProcessState,
    SectionKind,
)
from loopcanary.flight.lanes import bucket_limit_ns
from loopcanary.model import (
    Clock,
    Collection,
    Contributor,
    LaneTotals,
    LockProof,
    LockView,
    Scheduler,
    StallScope,
    Target,
    TargetKind,
)

Q32 = 1 << 32


def read(flight: FlightBuilder) -> FlightFile:
    return FlightFile(bytes(flight))


def read_one(flight: FlightBuilder, evidence):
    slot = flight.add_stall(evidence)
    found = read(flight).slot_evidence(slot)
    assert found is not None
    return found


def test_the_header_says_whose_file_it_is():
    flight = FlightBuilder(
        pid=41,
        parent_pid=7,
        process_start=12345,
        heartbeat_ns=99,
        parked=1,
        gc_total_ns=5,
        anchor_monotonic_ns=10,
        anchor_wall_ns=1000,
        clock_kind=ClockKind.TSC,
    )

    header = read(flight).header

    assert (header.version, header.pid, header.parent_pid, header.process_start) == (2, 41, 7, 12345)
    assert header.boot_id == BOOT_ID
    assert header.clock == Clock(monotonic_ns=10, wall_ns=1000)
    assert (header.heartbeat_ns, header.parked, header.gc_total_ns) == (99, True, 5)
    assert (header.state, header.ended_ns, header.clock_kind) == (ProcessState.RUNNING, None, ClockKind.TSC)
    assert header.gc_running_since_ns is None


def test_a_process_that_ended_says_when():
    header = read(FlightBuilder(state=ProcessState.ENDED, ended_ns=5_000)).header

    assert (header.state, header.ended_ns, header.by_exit) == (ProcessState.ENDED, 5_000, False)
    header = read(FlightBuilder(state=ProcessState.EXITED, ended_ns=5_000)).header
    assert (header.state, header.ended_ns, header.by_exit) == (ProcessState.ENDED, 5_000, True)


def test_a_boot_that_is_unknown_has_no_id():
    assert read(FlightBuilder(boot_id=bytes(16))).header.boot_id == ""


def test_ticks_become_nanoseconds_by_anchor_and_rate():
    # A counter of 4 GHz: 0.25 ns a tick.
    flight = FlightBuilder(rate_q32=Q32 // 4, anchor_ticks=1_000_000, anchor_monotonic_ns=7_000)
    file = read(flight)

    assert file.tick_clock.instant_ns(1_000_000) == 7_000
    assert file.tick_clock.instant_ns(1_000_000 + 4_003) == 8_000
    assert file.tick_clock.instant_ns(1_000_000 - 4_003) == 6_000


def test_ticks_before_the_clock_began_are_its_beginning():
    assert read(FlightBuilder(anchor_ticks=1 << 62)).tick_clock.instant_ns(0) == 0


def test_a_rate_that_is_not_measured_yet_is_one():
    assert read(FlightBuilder(rate_q32=0)).tick_clock.instant_ns(1_234) == 1_234


def test_facts_come_back():
    facts = {"name": "shop", "host": "größe", "cores": 8, "loops": [1, None, True], "limit": 0.5}

    assert read(FlightBuilder(facts=facts)).facts() == facts


def test_no_facts_yet_are_an_empty_object():
    assert read(FlightBuilder()).facts() == {}


def test_counters_have_the_names_of_the_native_side():
    flight = FlightBuilder()
    flight.put_counters(samples_taken=12, checkpoints_failed=1)

    counters = read(flight).counters()

    assert tuple(counters) == COUNTERS
    assert {name: n for name, n in counters.items() if n} == {"samples_taken": 12, "checkpoints_failed": 1}


def test_a_lane_without_the_kernels_counters_says_so():
    flight = FlightBuilder()
    flight.add_lane(opened_ns=1)

    (totals,) = read(flight).lanes()
    assert (totals.on_cpu_ns, totals.run_queue_ns, totals.gc_ns) == (None, None, 0)


def test_contributors_are_one_for_each_name():
    flight = FlightBuilder()
    slot = flight.add_stall(turn(contributors_dropped=1))
    builder = SlotBuilder.resumed(flight.data, flight.at(SectionKind.SLOTS, slot))
    builder.put_contributor(0, Contributor(name="parse", count=3, total_ns=30, longest_ns=20))
    builder.put_contributor(1, Contributor(name="", count=5, total_ns=50, longest_ns=10))
    builder.put_contributor(2, Contributor(name="parse", count=1, total_ns=21, longest_ns=21))

    (_, evidence), *_ = read(flight).stalls()
    assert evidence.contributors == (Contributor(name="parse", count=4, total_ns=51, longest_ns=21),)
    assert evidence.contributors_dropped == 6


def test_a_callbacks_schedulers_are_put_together():
    flight = FlightBuilder()
    slot = flight.add_stall(turn())
    builder = SlotBuilder.resumed(flight.data, flight.at(SectionKind.SLOTS, slot))
    for index, (line, count) in enumerate(((30, 2), (12, 7), (0, 1))):
        site = (Scheduler(file="/srv/app.py", line=line, count=count),) if line else ()
        one = Contributor(name="parse", count=count, total_ns=count, longest_ns=1, scheduled=site)
        builder.put_contributor(index, one)

    ((_, evidence),) = read(flight).stalls()
    (parse,) = evidence.contributors
    assert (parse.count, parse.total_ns) == (10, 10)
    assert [(one.line, one.count) for one in parse.scheduled] == [(12, 7), (30, 2)]


def test_of_a_callback_the_tally_of_its_turn_is_no_evidence():
    evidence = stall(contributors=turn().contributors, contributors_from_ns=BEGIN, contributors_dropped=3)
    flight = FlightBuilder()
    flight.add_stall(evidence)

    ((_, found),) = read(flight).stalls()
    assert (found.contributors, found.contributors_from_ns, found.contributors_dropped) == ((), None, 0)


def test_a_reading_after_the_stalls_begin_is_none_before_it():
    flight = FlightBuilder()
    flight.add_stall(stall(before=reading(BEGIN + 1)))

    ((_, found),) = read(flight).stalls()
    assert found.before is None


def test_a_lane_tells_its_sums():
    flight = FlightBuilder(rate_q32=2 * Q32)
    lane = flight.add_lane(
        loop_kind="uvloop",
        thread_name="größe",
        tid=42,
        generation=3,
        opened_ns=1_000,
        turns=10,
        callbacks=30,
        busy_ticks=5 * MS,
        busy_ns2_high=2,
        busy_ns2_low=9,
        longest_turn=3 * MS,
        queue_ticks_total=400,
        queue_ticks_max=100,
        turn_epoch=21,
        turn_begin=6_000,
        callback_ticks=4 * MS,
        callback_ticks2_high=1,
        callback_ticks2_low=5,
        slices_congested=7,
        stalls=2,
        stalled_ticks=MS,
        gc_ns=11,
        on_cpu_begin_ns=100,
        on_cpu_ns=400,
        run_queue_begin_ns=20,
        run_queue_ns=25,
    )
    flight.put_histogram(lane, {0: 7, 17: 3})

    assert read(flight).lanes() == [
        LaneTotals(
            lane=0,
            generation=3,
            tid=42,
            loop_kind="uvloop",
            thread_name="größe",
            opened_ns=1_000,
            closed_ns=None,
            turns=10,
            callbacks=30,
            busy_ns=10 * MS,
            busy_ns_squared=(2 << 64) + 9,
            longest_turn_ns=6 * MS,
            queue_ns_total=800,
            queue_ns_max=200,
            slices_congested=7,
            callback_ns=8 * MS,
            callback_ns_squared=4 * ((1 << 64) + 5),
            stalls=2,
            stalled_ns=2 * MS,
            gc_ns=11,
            on_cpu_ns=300,
            run_queue_ns=5,
            histogram=((1 << 10, 7), ((1 << 11) + (1 << 7), 3)),
            busy_since_ns=12_000,
            turned_ns=12_000,
        )
    ]


@pytest.mark.parametrize(
    ("at_opening", "last"),
    [
        pytest.param((0, 0), (400, 25), id="told nothing when the lane was opened"),
        pytest.param((400, 25), (400, 25), id="not read since: the watchdog reads a few lanes only"),
        pytest.param((400, 25), (300, 90), id="last read of the lane's owner before"),
    ],
)
def test_a_lanes_cpu_share_needs_two_readings(at_opening, last):
    flight = FlightBuilder()
    flight.add_lane(
        on_cpu_begin_ns=at_opening[0],
        run_queue_begin_ns=at_opening[1],
        on_cpu_ns=last[0],
        run_queue_ns=last[1],
    )

    assert [(totals.on_cpu_ns, totals.run_queue_ns) for totals in read(flight).lanes()] == [(None, None)]


def test_a_lane_between_turns_is_not_busy():
    flight = FlightBuilder()
    flight.add_lane(turn_epoch=20, turn_begin=6_000)

    assert [totals.busy_since_ns for totals in read(flight).lanes()] == [None]


def test_closed_lanes_keep_figures_free_ones_are_left_out():
    flight = FlightBuilder()
    flight.add_lane(state=LaneState.FREE)
    flight.add_lane(state=LaneState.CLOSED, turns=4, closed_ns=8_000, turn_epoch=7)

    assert [(t.lane, t.turns, t.closed_ns, t.busy_since_ns) for t in read(flight).lanes()] == [
        (1, 4, 8_000, None)
    ]


def test_histogram_buckets_are_sixteen_an_octave():
    limits = [bucket_limit_ns(index) for index in range(HISTOGRAM_BUCKETS)]

    assert limits[0] == 1 << 10
    assert limits[16] == 1 << 11
    assert limits[-1] == 1 << 40
    assert all(a < b <= a * 1.0626 for a, b in itertools.pairwise(limits))


def test_the_last_bucket_reaches_as_far_as_the_longest_turn():
    flight = FlightBuilder()
    lane = flight.add_lane(longest_turn=1 << 41)
    flight.put_histogram(lane, {HISTOGRAM_BUCKETS - 1: 1})

    assert read(flight).lanes()[0].histogram == ((1 << 41, 1),)


def test_what_a_thread_does_now():
    flight = FlightBuilder()
    flight.add_lane(epoch=5, begin=300, turn_epoch=3, turn_begin=200, turn_callbacks=2, thread_name="ui")
    flight.add_lane(epoch=6, begin=300, turn_epoch=4, turn_begin=200)
    flight.add_lane(state=LaneState.CLOSED)

    [(inside, idle, closed), _] = read(flight).glances().look()

    assert (inside.totals.thread_name, inside.callback_since_ns, inside.turn_since_ns) == ("ui", 300, 200)
    assert inside.turn_callbacks == 2
    assert (idle.callback_since_ns, idle.turn_since_ns) == (None, None)
    assert closed.totals.closed_ns is not None


def test_collections_come_oldest_first_after_a_wrap():
    every = [
        Collection(
            begin_ns=100 * i, end_ns=100 * i + 50, tid=41, generation=i % 3, collected=i, uncollectable=1
        )
        for i in range(100)
    ]
    flight = FlightBuilder()
    for collection in every:
        flight.add_collection(collection)

    assert read(flight).collections() == tuple(every[-64:])


def test_a_whole_stall_comes_back():
    flight = FlightBuilder()
    slot = flight.add_stall(stall())

    file = read(flight)

    assert file.slot_evidence(slot) == stall()
    assert file.stalls() == [(slot, stall())]


def test_a_stall_has_overlapping_and_earlier_collections():
    before, inside, across, after = (
        Collection(begin_ns=BEGIN + begin * MS, end_ns=BEGIN + end * MS, tid=41, generation=2)
        for begin, end in ((-20, -10), (10, 20), (240, 260), (260, 270))
    )
    flight = FlightBuilder()
    for collection in (before, inside, across, after):
        flight.add_collection(collection)
    slot = flight.add_stall(stall())

    assert read(flight).slot_evidence(slot) == stall(
        collections=(inside, across), earlier_collections=(before,)
    )


def test_a_collection_at_death_lasts_to_the_last_look():
    flight = FlightBuilder(gc_epoch=9, gc_begin=BEGIN + 60 * MS, gc_tid=41, gc_generation=2)
    slot = flight.add_stall(going_on())

    running = Collection(begin_ns=BEGIN + 60 * MS, end_ns=BEGIN + 150 * MS, tid=41, generation=2)
    assert read(flight).slot_evidence(slot) == going_on(collections=(running,))


def test_threads_get_the_names_of_their_lanes():
    flight = FlightBuilder()
    slot = flight.add_stall(stall())
    flight.add_lane(tid=43, thread_name="worker")

    evidence = read(flight).slot_evidence(slot)

    assert evidence is not None
    assert [thread.name for thread in evidence.threads] == ["worker", ""]


def test_a_thread_that_was_read_again_is_as_it_was_then():
    flight = FlightBuilder()
    first, *others = stall().threads
    again = replace(first, at_ns=first.at_ns + 1, thread_state="D")
    slot = flight.add_stall(stall(threads=(first, *others, again)))

    evidence = read(flight).slot_evidence(slot)

    assert evidence is not None
    assert evidence.threads == (replace(again, name=""), *(replace(one, name="") for one in others))


def test_a_name_read_with_the_stall_goes_before_the_lanes():
    flight = FlightBuilder()
    slot = flight.add_stall(stall(thread_names=((43, "resizer"),)))
    flight.add_lane(tid=43, thread_name="worker")

    evidence = read(flight).slot_evidence(slot)

    assert evidence is not None
    assert evidence.thread_names == ((43, "resizer"),)
    assert [thread.name for thread in evidence.threads] == ["resizer", ""]


def test_equal_stacks_are_one_object():
    flight = FlightBuilder()
    evidence = read_one(flight, stall(samples=stall().samples[:2]))

    first, second = evidence.samples
    assert first.stack is second.stack


def test_samples_of_another_callback_are_not_the_stalls():
    flight = FlightBuilder()
    slot = flight.add_stall(stall(), epoch=5)
    flight.put_slot(slot, epoch=7)

    evidence = read(flight).slot_evidence(slot)

    assert evidence is not None
    assert evidence.samples == ()


def test_a_turn_takes_every_sample_between_its_begin_and_end():
    flight = FlightBuilder()
    evidence = read_one(flight, turn(end_ns=BEGIN + 35 * MS))

    assert [(s.at_ns - BEGIN) // MS for s in evidence.samples] == [20, 30]
    assert evidence.scope is StallScope.TURN


def test_a_fault_in_no_turn_is_no_stall_of_a_process_that_lives():
    flight = FlightBuilder()
    told = turn(scope=StallScope.THREAD, loop_kind="thread", end_ns=None)
    slot = flight.add_stall(told, lane=layout.LANE_COUNT)
    file = read(flight)

    assert file.slot_evidence(slot) is None
    assert (file.stalls(), file.glances().look()[1], file.glances().marks()) == ([], (), [])
    [(_, fault)] = file.stalls(faults=True)
    assert (fault.scope, fault.tid, fault.end_ns) == (StallScope.THREAD, told.tid, None)
    assert len(fault.samples) == len(told.samples)


def test_samples_are_in_order_and_none_twice():
    # As they stand while the watchdog thins them: every second one has been moved down.
    a, b, c = stall().samples
    evidence = read_one(FlightBuilder(), stall(samples=(c, a, b, a, c)))

    assert evidence.samples == (a, b, c)


@settings(max_examples=60)
@given(evidence=any_evidence())
def test_any_stall_comes_back(evidence):
    flight = FlightBuilder(slot_room=1)
    slot = flight.add_stall(evidence)

    assert read(flight).slot_evidence(slot) == evidence


@given(
    facts=st.dictionaries(
        st.text(),
        st.none()
        | st.booleans()
        | st.integers(-(1 << 62), 1 << 62)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        max_size=8,
    )
)
def test_any_facts_come_back(facts):
    assert read(FlightBuilder(facts=facts, lane_room=0, slot_room=0)).facts() == facts


def test_a_sample_says_what_its_thread_waited_for():
    waits = [
        {"target": Target(kind=TargetKind.SOCKET, name="[::1]:5432")},
        {"target": Target(kind=TargetKind.CHILD, name="sleep 5", pid=77)},
        {"target": Target(kind=TargetKind.FILE, name="")},
        {"lock": LockView(kind="RLock", proof=LockProof.OWNER), "holder_tid": 43, "holder_stack": HOLDER},
        {
            "lock": LockView(kind="lock", proof=LockProof.WITH, taken_at=2),
            "holder_tid": 43,
            "holder_stack": HOLDER,
        },
        {"lock": LockView(kind="import lock of numpy.linalg", proof=LockProof.WITH), "holder_tid": 44},
        {"lock": LockView(kind="thread", proof=LockProof.NONE)},
    ]
    samples = tuple(sample(20 + number, **wait) for number, wait in enumerate(waits))

    found = read_one(FlightBuilder(), stall(samples=samples))

    assert found.samples == samples


def test_a_wait_of_a_kind_without_a_name_here_is_none():
    flight = FlightBuilder()
    slot = flight.add_stall(stall(samples=(sample(20),)))
    at = flight.at(SectionKind.SLOTS, slot) + layout.SLOT_SAMPLES_OFFSET
    put(
        flight.data,
        layout.SAMPLE,
        at,
        {"target_kind": 200, "lock_kind": 200, "lock_proof": 200, "lock_frame": 200},
    )

    (found,) = read(flight).slot_evidence(slot).samples

    assert (found.target, found.lock) == (None, None)


def test_earlier_collections_are_apart_from_those_in_it():
    flight = FlightBuilder()
    spans = ((-90, -80), (-5, 5), (20, 30), (249, 260), (251, 260))
    every = [
        Collection(begin_ns=BEGIN + begin * MS, end_ns=BEGIN + end * MS, tid=41, generation=2)
        for begin, end in spans
    ]
    for collection in every:
        flight.add_collection(collection)
    found = read_one(flight, stall())
    assert found.earlier_collections == (every[0],)
    assert found.collections == tuple(every[1:4])
