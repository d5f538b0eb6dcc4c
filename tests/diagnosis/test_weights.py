"""Weights and coverage."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopcanary.diagnosis.samples.weights import fit_to_counters, weigh

MOMENTS = st.integers(0, 10**10)


@st.composite
def stalls(draw):
    begin = draw(MOMENTS)
    end = begin + draw(MOMENTS)
    times = sorted(draw(st.lists(st.integers(begin, end), max_size=50)))
    return times, begin, end, draw(st.integers(0, 10**8))


def test_the_time_between_two_samples_is_shared_at_its_middle():
    weights = weigh([20, 30, 50], 0, 60, 10)
    assert weights.weights_ns == (25, 15, 20)
    assert weights.seen_ns == (5, 15, 20)
    assert weights.covered_ns == 40


def test_the_head_before_the_first_sample_is_not_covered():
    assert weigh([80, 90], 0, 100, 10).covered_ns == 20


def test_the_tail_is_covered_for_one_step_only():
    assert weigh([20, 30], 0, 1_000, 10).covered_ns == 20
    assert weigh([20], 0, 1_000, 10).covered_ns == 10


def test_without_a_sample_nothing_is_covered():
    weights = weigh([], 0, 100, 10)
    assert (weights.weights_ns, weights.covered_ns, weights.duration_ns) == ((), 0, 100)


@given(stalls())
def test_weights_share_the_whole_duration_and_what_was_seen(stall):
    times, begin, end, interval = stall
    weights = weigh(times, begin, end, interval)
    assert sum(weights.weights_ns) == (end - begin if times else 0)
    assert sum(weights.seen_ns) == weights.covered_ns <= end - begin
    assert all(0 <= seen <= weight for seen, weight in zip(weights.seen_ns, weights.weights_ns, strict=True))
    assert 0 <= weights.covered_ns <= weights.duration_ns


@given(stalls())
def test_each_moment_belongs_to_a_nearest_sample(stall):
    times, begin, end, interval = stall
    edge = begin
    for time, weight in zip(times, weigh(times, begin, end, interval).weights_ns, strict=True):
        for moment in (edge, edge + weight):
            assert abs(moment - time) <= min(abs(moment - other) for other in times) + 1
        edge += weight


def test_sleeps_have_no_more_of_a_stall_than_the_counters_leave():
    assert fit_to_counters([10, 10, 10, 10], [True, False, True, True], 100, (0, 25)) == (3, 30, 3, 3)
    assert fit_to_counters([10, 10, 10, 10], [True, False, True, True], 100, (0, 80)) == (10, 10, 10, 10)


def test_sleeps_have_as_much_of_a_stall_as_the_counters_prove():
    assert fit_to_counters([10, 10, 10, 10], [True, False, False, True], 100, (80, 100)) == (16, 4, 4, 16)
    assert fit_to_counters([10, 10, 10, 10], [False] * 4, 100, (80, 100)) == (10, 10, 10, 10)


def test_where_no_sample_ran_the_sleeps_keep_what_they_have():
    assert fit_to_counters([10, 10], [True, True], 100, (0, 5)) == (10, 10)


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.booleans()), max_size=50),
    st.integers(0, 10**10),
    st.tuples(st.integers(0, 10**10), st.integers(0, 10**10)).map(sorted),
)
def test_weights_that_fit_the_counters_sum_to_the_same(samples, duration_ns, slept_ns):
    weights = [weight for weight, _ in samples]
    fitted = fit_to_counters(weights, [sleeps for _, sleeps in samples], duration_ns, tuple(slept_ns))
    assert abs(sum(fitted) - sum(weights)) <= len(weights)
    assert all(weight >= 0 for weight in fitted)
