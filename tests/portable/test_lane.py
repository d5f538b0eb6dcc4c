from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcanary.portable.lane import Ongoing, _bucket, _upper_bound

from .conftest import name_of

MS = 1_000_000


def work(lane, clock, ms):
    lane.begin(clock())
    lane.end(clock.pass_ms(ms))


def test_work_is_seen_while_it_goes_on(lane, clock):
    assert lane.look() is None
    lane.begin(clock())
    assert lane.look() == Ongoing(1, clock())
    lane.end(clock.pass_ms(1))
    assert lane.look() is None
    lane.begin(clock())
    assert lane.look().epoch == 3


@pytest.mark.parametrize(("ms", "stalls"), [(99, 0), (100, 0), (100.001, 1), (5_000, 1)])
def test_longer_than_the_threshold_is_a_stall(lane, clock, rings, ms, stalls):
    work(lane, clock, ms)
    assert len(lane.ended) == len(rings) == stalls


def test_a_stall_is_recorded_by_its_own_thread_exactly(lane, clock):
    begin_ns = clock()
    lane.scene = "checkout"
    work(lane, clock, 250)
    (ended,) = lane.ended
    assert (ended.epoch, ended.begin_ns, ended.end_ns) == (1, begin_ns, begin_ns + 250 * MS)
    assert ended.scene == "checkout"
    assert ended.cpu_ns > 0


def test_an_end_without_a_begin_is_nothing(lane, clock):
    lane.end(clock())
    assert (lane.epoch, lane.turns) == (0, 0)


def test_an_allowance_is_for_the_work_in_which_it_was_given(lane, clock):
    lane.begin(clock())
    lane.allow(300 * MS)
    lane.allow(200 * MS)
    lane.end(clock.pass_ms(300))
    assert not lane.ended
    lane.begin(clock())
    lane.allow(200 * MS)
    lane.end(clock.pass_ms(201))
    work(lane, clock, 150)
    assert [ended.allowance_ns for ended in lane.ended] == [200 * MS, 0]


def test_a_name_is_for_the_work_in_which_it_was_given(lane, clock):
    lane.begin(clock())
    lane.name_work("import")
    lane.end(clock.pass_ms(200))
    work(lane, clock, 200)
    assert [name_of(ended) for ended in lane.ended] == ["import", None]


def test_a_closed_lane_is_not_busy(lane, clock):
    lane.begin(clock())
    lane.close(clock())
    assert lane.look() is None
    assert lane.totals(clock()).closed_ns == clock()


def test_totals_are_sums_of_turns(lane, clock):
    for ms in (1, 2, 300):
        work(lane, clock, ms)
    lane.begin(clock())
    totals = lane.totals(clock.pass_ms(1))
    assert totals.turns == 3
    assert totals.busy_ns == 303 * MS
    assert totals.busy_ns_squared == (1 + 4 + 90_000) * MS * MS
    assert totals.longest_turn_ns == 300 * MS
    assert totals.busy_since_ns == clock() - 1 * MS
    assert sum(count for _, count in totals.histogram) == 3
    assert (totals.stalls, totals.stalled_ns) == (1, 300 * MS)
    assert totals.slices_congested in (2, 3)  # by where the slices lie


def test_a_ticker_is_not_busy_before_its_tick_is_due(ticked_lane, clock):
    work(ticked_lane, clock, 5)
    ticked_lane.begin(clock() + 20 * MS)
    totals = ticked_lane.totals(clock())
    assert (totals.turns, totals.busy_ns, totals.busy_since_ns) == (0, 5 * MS, None)


@given(st.integers(0, 1 << 45))
def test_a_bucket_is_narrow_and_holds_its_durations(duration_ns):
    bucket = _bucket(duration_ns)
    upper = _upper_bound(bucket)
    lower = _upper_bound(bucket - 1) if bucket else 0
    assert lower <= duration_ns < upper
    assert bucket == 0 or upper - lower <= lower / 16
