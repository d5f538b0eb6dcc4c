"""Loop figures against a simulation of arrivals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcanary.diagnosis import loop_health
from loopcanary.model import LaneTotals

MS = 1_000_000
S = 1_000 * MS
ARRIVALS = 20_000
BUCKET_WIDTH = 0.0625


def upper_bound(duration_ns):
    """Of the native engine's bucket: 16 to the octave."""
    octave = max(0, duration_ns.bit_length() - 1)
    step = max(1, (1 << octave) // 16)
    return (duration_ns // step + 1) * step


def totals(durations, window_ns, **more):
    buckets: dict[int, int] = {}
    for duration in durations:
        buckets[upper_bound(duration)] = buckets.get(upper_bound(duration), 0) + 1
    facts = {
        "lane": 0,
        "generation": 1,
        "tid": 70,
        "loop_kind": "asyncio",
        "thread_name": "MainThread",
        "opened_ns": 0,
        "closed_ns": window_ns,
        "turns": len(durations),
        "callbacks": 2 * len(durations),
        "busy_ns": sum(durations),
        "busy_ns_squared": sum(duration * duration for duration in durations),
        "longest_turn_ns": max(durations, default=0),
        "queue_ns_total": 0,
        "queue_ns_max": 0,
        "histogram": tuple(sorted(buckets.items())),
    }
    return LaneTotals(**{**facts, **more})


def simulated(durations, window_ns):
    """Delays of arrivals at even distances over a window that the turns are laid into."""
    gap = (window_ns - sum(durations)) / (len(durations) + 1)
    delays, begin, index = [], gap, 0
    for number in range(ARRIVALS):
        moment = (number + 0.5) * window_ns / ARRIVALS
        while index < len(durations) and moment >= begin + durations[index]:
            begin += durations[index] + gap
            index += 1
        inside = index < len(durations) and moment >= begin
        delays.append(begin + durations[index] - moment if inside else 0.0)
    return sorted(delays)


@given(
    st.lists(st.integers(10_000, 2 * S), min_size=1, max_size=30),
    st.floats(0.02, 0.98),
    st.sampled_from([0.50, 0.99]),
)
def test_quantiles_agree_with_arrivals_at_random_moments(durations, load, quantile):
    window = int(sum(durations) / load)
    delays = simulated(durations, window)
    health = loop_health(totals(durations, window), now_ns=0)
    found = health.delay_p50_ns if quantile == 0.50 else health.delay_p99_ns
    index = int(quantile * ARRIVALS)
    margin = BUCKET_WIDTH * max(durations) + 2 * window / ARRIVALS
    assert delays[max(0, index - 2)] - margin <= found <= delays[min(ARRIVALS - 1, index + 2)] + margin


@given(st.lists(st.integers(10_000, 2 * S), min_size=1, max_size=30), st.floats(0.02, 0.98))
def test_the_mean_is_exact(durations, load):
    window = int(sum(durations) / load)
    delays = simulated(durations, window)
    health = loop_health(totals(durations, window), now_ns=0)
    assert health.delay_mean_ns == sum(duration**2 for duration in durations) // (2 * window)
    assert health.delay_mean_ns == pytest.approx(sum(delays) / ARRIVALS, rel=0.05, abs=3 * window / ARRIVALS)


def test_three_stalls_of_a_second_a_minute_are_seen_by_arrivals():
    # The example of the glossary: a heartbeat of 20 ms would report a p99 of nothing.
    health = loop_health(totals([S, S, S], 60 * S), now_ns=0)
    assert health.delay_p99_ns == pytest.approx(800 * MS, rel=0.01)
    assert health.delay_p50_ns == 0
    assert health.delay_max_ns == S
    assert health.utilization == pytest.approx(0.05)


def test_a_turn_that_goes_on_counts_with_what_it_has_lasted():
    health = loop_health(totals([], 0, closed_ns=None, busy_since_ns=6 * S), now_ns=10 * S)
    assert (health.busy_ns, health.delay_max_ns, health.utilization) == (4 * S, 4 * S, 0.4)
    assert health.delay_mean_ns == 800 * MS
    assert health.delay_p50_ns == 0
    assert health.delay_p99_ns == pytest.approx(3_900 * MS)


def test_a_loop_that_never_ran_has_no_figures_to_divide():
    health = loop_health(totals([], 0), now_ns=0)
    assert (health.utilization, health.delay_p99_ns, health.delay_mean_ns, health.queue_mean_ns) == (
        0.0,
        0,
        0,
        0,
    )


@given(
    st.lists(st.tuples(st.integers(0, 1 << 60), st.integers(0, 1 << 40)), max_size=9),
    st.integers(0, 1 << 100),
    st.integers(0, 1 << 62),
)
def test_sums_that_contradict_each_other_raise_nothing(histogram, squares, longest):
    odd = totals([], 10 * S, histogram=tuple(histogram), busy_ns_squared=squares, longest_turn_ns=longest)
    health = loop_health(odd, now_ns=0)
    assert 0 <= health.delay_p50_ns <= max(longest, health.delay_p99_ns)
