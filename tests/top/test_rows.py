"""From readings to rows: what a lane does now, and what differences tell; on clocks of the tests' own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopcanary import diagnosis
from loopcanary.model import StallState
from loopcanary.model.live import LaneReading, Life, ProcessReading, Work
from loopcanary.top.past import RECENT_NS, Past, between, busy_ns, utilization_between
from loopcanary.top.rows import LaneRow, State, rows

from .readings import MS, NOW, WALL, S, in_callback, lane, process, stall, totals


def one(reading: ProcessReading, past: Past | None = None, now_wall_ns: int = WALL) -> LaneRow:
    [row] = rows([reading], past or Past(), diagnosis.loop_health, now_wall_ns)
    return row


STATES: dict[str, tuple[LaneReading, State, int | None]] = {
    "waits": (lane(), State.IDLE, None),
    "in a callback": (in_callback(30 * MS), State.BUSY, 30 * MS),
    "between two callbacks of a turn": (lane(turn_since_ns=NOW - 40 * MS), State.BUSY, 40 * MS),
    "in a callback beyond the threshold": (in_callback(120 * MS), State.STALLED, 120 * MS),
    "for a second": (in_callback(S), State.HUNG, S),
    "as the watchdog says, before its time here": (
        in_callback(90 * MS, in_stall=True),
        State.STALLED,
        90 * MS,
    ),
    "in what it may do": (in_callback(400 * MS, allowance_ns=2 * S), State.BUSY, 400 * MS),
    "beyond what it may do": (in_callback(3 * S, allowance_ns=2 * S), State.HUNG, 3 * S),
    "in a burst": (
        lane(callback_since_ns=NOW - MS, turn_since_ns=NOW - 300 * MS),
        State.STALLED,
        300 * MS,
    ),
    "closed": (lane(sums={"closed_ns": NOW - 7 * S}), State.CLOSED, 7 * S),
}


@pytest.mark.parametrize(("reading", "state", "for_ns"), STATES.values(), ids=STATES)
def test_what_a_lane_does(reading: LaneReading, state: State, for_ns: int | None):
    row = one(process(reading))
    assert (row.state, row.state_ns) == (state, for_ns)


@pytest.mark.parametrize(
    ("life", "state"), [(Life.KILLED, State.KILLED), (Life.EXITED, State.EXITED), (Life.UNKNOWN, State.HUNG)]
)
def test_a_dead_process_does_nothing_any_more(life: Life, state: State):
    row = one(process(in_callback(3 * S), life=life), now_wall_ns=WALL + 60 * S)
    assert row.state is state
    assert row.state_ns == (60 * S if state is not State.HUNG else 3 * S)


def test_a_kill_is_shown_with_its_stall_and_counted():
    reading = in_callback(3 * S, in_stall=True, sums={"stalls": 2, "stalled_ns": 500 * MS})
    row = one(process(reading, life=Life.KILLED))
    assert (row.work, row.work_ns) == (Work(callback="handle", task="request-7"), 3 * S)
    assert (row.stalls, row.stalled_ns) == (3, 3 * S + 500 * MS)
    assert row.utilization_now is row.delay_now is row.callbacks_per_s is None


def test_a_stall_that_goes_on_is_counted():
    row = one(process(in_callback(3 * S, sums={"stalls": 2, "stalled_ns": 500 * MS})))
    assert (row.stalls, row.stalled_ns) == (3, 3 * S + 500 * MS)


def test_the_last_stall_is_that_of_the_lane():
    latest = stall()
    both = process(lane(), lane(sums={"lane": 1}), last={1: latest})
    assert [row.last for row in rows([both], Past(), diagnosis.loop_health, WALL)] == [None, latest]


def test_what_is_past():
    closed = [lane(sums={"lane": n, "closed_ns": NOW - (3 - n) * S}) for n in range(2)]
    told = rows([process(*closed, lane(sums={"lane": 2}))], Past(), diagnosis.loop_health, WALL)
    assert [row.is_past for row in told] == [True, True, False]
    told = rows([process(*closed)], Past(), diagnosis.loop_health, WALL)
    assert [row.is_past for row in told] == [True, False]


# ---- differences -----------------------------------------------------------------------------------


def later(before: LaneReading, by_ns: int, **sums: Any) -> ProcessReading:
    return process(replace(before, totals=replace(before.totals, **sums)), at_ns=NOW + by_ns)


def seen(*readings: ProcessReading) -> Past:
    past = Past()
    for reading in readings:
        past.add([reading])
    return past


def test_the_first_reading_tells_nothing_of_now():
    row = one(process())
    assert row.utilization_now is row.delay_now is row.callbacks_per_s is None
    assert row.utilization == pytest.approx(0.1)
    assert row.delay.p99_ns > 0


def test_now_is_what_lies_between_the_last_two_readings():
    before = lane()
    after = later(
        before,
        2 * S,
        busy_ns=10 * S + 500 * MS,
        turns=1_050,
        callbacks=3_100,
        busy_ns_squared=before.totals.busy_ns_squared + 50 * (10 * MS) ** 2,
        histogram=((10 * MS, 1_050),),
    )
    row = one(after, seen(process(before)))
    assert row.utilization_now == pytest.approx(0.25)
    assert row.callbacks_per_s == pytest.approx(50)
    # Fifty turns of 10 ms in 2 s: P(delay > x) = 50 (10 ms - x) / 2 s.
    assert row.delay_now is not None
    assert row.delay_now.p50_ns == 0
    assert row.delay_now.p99_ns == pytest.approx(9.6 * MS, rel=0.01)


def test_a_turn_in_progress_is_busy_time():
    before = in_callback(200 * MS)
    after = replace(process(replace(before, turn_callbacks=30)), at_ns=NOW + S)
    row = one(after, seen(process(before)))
    assert row.utilization_now == 1.0
    assert row.callbacks_per_s == 30
    assert row.state_ns == 1_200 * MS


def test_a_loop_that_hangs_makes_everything_wait():
    before = in_callback(200 * MS)
    row = one(replace(process(before), at_ns=NOW + 4 * S), seen(process(before)))
    assert row.delay_now is not None
    assert row.delay_now.p50_ns == pytest.approx(2 * S)
    assert row.delay_now.p99_ns == pytest.approx(3.96 * S)


def test_delays_are_of_the_last_seconds():
    slow = lane()
    calm = later(slow, S, busy_ns=10 * S + 990 * MS, histogram=((10 * MS, 1_000), (990 * MS, 1)))
    past = seen(process(slow), calm)
    assert one(replace(calm, at_ns=NOW + 2 * S), past).delay_now.p99_ns > 100 * MS  # type: ignore[union-attr]
    much_later = NOW + S + RECENT_NS + S
    past.add([replace(calm, at_ns=much_later)])
    row = one(replace(calm, at_ns=much_later + S), past)
    assert (row.utilization_now, row.delay_now.p99_ns) == (0.0, 0)  # type: ignore[union-attr]


def test_another_owner_of_the_lane_is_another_lane():
    before = lane(sums={"callbacks": 10})
    row = one(later(before, S, generation=2, callbacks=5_000), seen(process(before)))
    assert row.callbacks_per_s is None


def test_what_is_gone_is_forgotten():
    past = seen(process())
    assert past.last(("1-1", 0, 1)) is not None
    past.add([])
    assert past.last(("1-1", 0, 1)) is None


counts = st.dictionaries(st.integers(1, 200 * S), st.integers(0, 1_000), max_size=5)


@settings(max_examples=60)
@given(
    earlier=counts,
    more=counts,
    busy=st.integers(0, 200 * S),
    gained=st.integers(-5 * MS, 20 * S),
    window=st.integers(-S, 20 * S),
    since=st.none() | st.integers(0, 600 * S),
)
def test_differences_stay_in_their_bounds(*, earlier, more, busy, gained, window, since):
    """Readings may be torn, clocks refined, files damaged."""
    joined = {upper: earlier.get(upper, 0) + more.get(upper, 0) for upper in {*earlier, *more}}
    first = totals(busy_ns=busy, histogram=tuple(sorted(earlier.items())))
    second = totals(
        busy_ns=max(busy + gained, 0), histogram=tuple(sorted(joined.items())), busy_since_ns=since
    )
    share = utilization_between(first, NOW, second, NOW + window)
    assert share is None if window <= 0 else 0.0 <= share <= 1.0
    sums = between(first, NOW, second, NOW + window)
    assert sum(count for _, count in sums.histogram) == sum(more.values())
    assert all(upper <= max(window, 0) for upper, _ in sums.histogram)
    health = diagnosis.loop_health(sums, NOW + window)
    assert 0.0 <= health.utilization <= 1.0
    assert 0 <= health.delay_p50_ns <= health.delay_p99_ns <= max(window, 0)


def test_busy_time_has_the_turn_that_goes_on():
    assert busy_ns(totals(busy_ns=S, busy_since_ns=NOW - 3 * S), NOW) == 4 * S
    assert busy_ns(totals(busy_ns=S, busy_since_ns=NOW + 3 * S), NOW) == S


def test_the_duration_of_a_stall_that_goes_on_is_that_of_now():
    from loopcanary.top.columns import last_words

    ongoing = stall(state=StallState.ONGOING, duration_ns=S)
    row = one(process(in_callback(12 * S), last={0: ongoing}))
    assert last_words(row).startswith("12.0 s sleep ")
