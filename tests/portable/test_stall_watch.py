from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcanary.model import GilState, Sample
from loopcanary.portable.lane import Ongoing
from loopcanary.portable.stall_watch import Limits, Spent, StallWatch, holder_while_late

MS = 1_000_000
LIMITS = Limits(threshold_ns=100 * MS, delay_ns=20 * MS, interval_ns=10 * MS, samples_max=8)


def sample(at_ms):
    return Sample(at_ns=at_ms * MS, stack=None)


def play(watch, look, *times_ms):
    """Looks at these moments; gives those at which a sample was taken."""
    taken = []
    for at_ms in times_ms:
        wish = watch.wish(look, at_ms * MS)
        if wish is not None:
            watch.add(wish, [sample(at_ms)], None)
            taken.append(at_ms)
    return taken


def test_the_first_sample_after_the_delay_then_one_each_interval():
    watch = StallWatch(LIMITS)
    assert play(watch, Ongoing(1, 0), *range(0, 61, 5)) == [20, 30, 40, 50, 60]


def test_a_thread_that_waits_is_not_sampled():
    assert StallWatch(LIMITS).wish(None, 10**12) is None


def test_each_piece_of_work_has_its_own_delay():
    watch = StallWatch(LIMITS)
    assert play(watch, Ongoing(1, 0), 20) == [20]
    assert play(watch, Ongoing(3, 25 * MS), 30, 44, 45) == [45]


def test_missed_moments_are_counted_and_not_caught_up():
    watch = StallWatch(LIMITS)
    assert play(watch, Ongoing(1, 0), 20, 75, 76, 80) == [20, 75, 80]
    assert watch.close(1).dropped == {"late": 4}


def test_a_full_buffer_is_thinned_and_the_interval_doubles():
    watch = StallWatch(LIMITS)
    play(watch, Ongoing(1, 0), *range(0, 131, 5))
    case = watch.close(1)
    assert case.interval_ns == 20 * MS
    assert [one.at_ns // MS for one in case.samples] == [20, 40, 60, 80, 100, 120]


def test_evidence_of_ended_work_waits_for_its_record():
    watch = StallWatch(LIMITS)
    play(watch, Ongoing(1, 0), 20, 30)
    play(watch, Ongoing(3, 40 * MS), 41)
    assert [one.at_ns // MS for one in watch.close(1).samples] == [20, 30]
    assert watch.close(3).samples == []
    assert watch.close(5) is None


def test_asking_when_to_look_next_does_not_let_go_of_a_case():
    watch = StallWatch(LIMITS)
    play(watch, Ongoing(1, 0), 20)
    assert watch.due_ns(Ongoing(3, 50 * MS)) == 70 * MS
    assert watch.due_ns(Ongoing(5, 60 * MS)) == 80 * MS
    assert watch.close(1).samples


def test_a_sample_for_work_that_is_gone_is_not_kept():
    watch = StallWatch(LIMITS)
    wish = watch.wish(Ongoing(1, 0), 20 * MS)
    watch.wish(Ongoing(3, 25 * MS), 26 * MS)
    watch.add(wish, [sample(20)], None)
    watch.drop(wish, "moved", 27 * MS)
    assert watch.close(1).samples == []
    assert watch.close(3).dropped == {}


def test_all_threads_are_wanted_once_from_a_second_on():
    watch, look = StallWatch(LIMITS), Ongoing(1, 0)
    assert not watch.wish(look, 999 * MS).all_threads
    wish = watch.wish(look, 1_000 * MS)
    assert wish.all_threads
    watch.add(wish, [sample(1_000)], None, None, ("a thread",))
    assert not watch.wish(look, 2_000 * MS).all_threads


@pytest.mark.parametrize(
    ("limits", "allowance_ms", "at_ms", "is_anr"),
    [
        pytest.param(LIMITS, 0, 4_999, False, id="before five seconds"),
        pytest.param(LIMITS, 0, 5_000, True, id="at five seconds"),
        pytest.param(LIMITS, 8_000, 5_000, False, id="within what was granted"),
        pytest.param(LIMITS, 8_000, 8_000, True, id="beyond what was granted"),
        pytest.param(LIMITS._replace(threshold_ns=9_000 * MS), 0, 6_000, False, id="below the threshold"),
    ],
)
def test_an_anr_is_published_while_it_lasts(limits, allowance_ms, at_ms, is_anr):
    watch, look = StallWatch(limits), Ongoing(1, 0)
    case = watch.long_running(look, at_ms * MS, allowance_ms * MS)
    assert (case is not None) is is_anr


def test_an_anr_is_published_once():
    watch, look = StallWatch(LIMITS), Ongoing(1, 0)
    case = watch.long_running(look, 5_000 * MS, 0)
    assert watch.long_running(look, 6_000 * MS, 0) is None
    assert watch.close(1) is case
    assert case.last_look_ns == 6_000 * MS


@given(st.lists(st.integers(1, 400), max_size=300))
def test_samples_stay_in_order_under_any_delay(steps_ms):
    watch, look, now_ms = StallWatch(LIMITS), Ongoing(1, 0), 0
    wishes = 0
    for step_ms in steps_ms:
        now_ms += step_ms
        wish = watch.wish(look, now_ms * MS)
        if wish is not None:
            wishes += 1
            watch.add(wish, [sample(now_ms)], None)
            assert watch.due_ns(look) > now_ms * MS
    case = watch.close(1)
    if case is None or not wishes:
        return
    times = [one.at_ns for one in case.samples]
    assert times == sorted(set(times))
    assert 1 <= len(times) < LIMITS.samples_max
    # Whatever was thinned, the samples cover the stall from its first one on.
    assert times[0] == min(times)
    assert times[-1] >= case.last_look_ns - 2 * case.interval_ns - 400 * MS


@pytest.mark.parametrize(
    ("late_ms", "spent", "holder"),
    [
        pytest.param(24, Spent(24 * MS, 24 * MS), GilState.UNKNOWN, id="a little late says nothing"),
        pytest.param(400, None, GilState.UNKNOWN, id="without CPU times nobody knows"),
        pytest.param(400, Spent(390 * MS, 395 * MS), GilState.SELF, id="the thread computed"),
        pytest.param(400, Spent(0, 395 * MS), GilState.OTHER, id="another one computed"),
        pytest.param(400, Spent(10 * MS, 20 * MS), GilState.UNKNOWN, id="nobody computed"),
        pytest.param(
            400, Spent(390 * MS, 390 * MS, 300 * MS), GilState.UNKNOWN, id="the watchdog had no CPU to run on"
        ),
    ],
)
def test_who_held_the_gil_while_the_watchdog_could_not_run(late_ms, spent, holder):
    assert holder_while_late(late_ms * MS, spent) is holder
