"""Loop figures against a simulation of arrivals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcanary.diagnosis.health import delay_shares, delay_without, loop_health, turns_without
from loopcanary.model import LaneTotals
from loopcanary.model.evidence import congested_slices

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
    st.sampled_from([0.50, 0.90, 0.99, 0.999]),
)
def test_quantiles_agree_with_arrivals_at_random_moments(durations, load, quantile):
    window = int(sum(durations) / load)
    delays = simulated(durations, window)
    health = loop_health(totals(durations, window), now_ns=0)
    found = {
        0.50: health.delay_p50_ns,
        0.90: health.delay_p90_ns,
        0.99: health.delay_p99_ns,
        0.999: health.delay_p999_ns,
    }[quantile]
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


# ---- stalls, callbacks, slices -----------------------------------------------------------------


def test_stalls_gc_and_run_queue_are_passed_on():
    lane = totals([S], 10 * S, stalls=4, stalled_ns=3 * S, gc_ns=5, run_queue_ns=None)
    health = loop_health(lane, now_ns=0)
    assert (health.stalls, health.stalled_ns, health.gc_ns, health.run_queue_ns) == (4, 3 * S, 5, None)


def test_callbacks_are_weighted_by_their_time():
    # Nine of 1 ms and one of 91 ms: the mean is 10 ms, but 91 of 100 ms passed in the long one.
    lane = totals([100 * MS], S, callback_ns=100 * MS, callback_ns_squared=(9 + 91 * 91) * MS * MS)
    assert loop_health(lane, now_ns=0).callback_weighted_ns == pytest.approx(82.9 * MS)
    assert loop_health(totals([MS], S), now_ns=0).callback_weighted_ns is None


@pytest.mark.parametrize(
    ("begin_ms", "end_ms", "slices"),
    [
        pytest.param(0, 100, 0, id="a turn of one slice's length congests none"),
        pytest.param(0, 101, 1, id="a turn that is a little longer congests the next"),
        pytest.param(50, 151, 1, id="the first 100 ms are the turn's own, wherever the slices lie"),
        pytest.param(50, 250, 2, id="every slice that is touched counts"),
        pytest.param(99, 1_000, 9, id="a turn of 901 ms"),
    ],
)
def test_slices_that_a_turn_congests(begin_ms, end_ms, slices):
    assert congested_slices(begin_ms * MS, end_ms * MS) == slices


@given(st.lists(st.tuples(st.integers(0, 300 * MS), st.integers(0, 700 * MS)), max_size=12))
def test_slices_agree_with_a_count_of_them_one_by_one(gaps_and_turns):
    at, congested, counted = 0, set(), 0
    for gap, duration in gaps_and_turns:
        begin, at = at + gap, at + gap + duration
        counted += congested_slices(begin, at)
        congested |= {i for i in range(at // (100 * MS) + 1) if _overlaps(i, begin + 100 * MS, at)}
    assert counted == len(congested)


def _overlaps(index, begin, end):
    return begin < end and index * 100 * MS < end and (index + 1) * 100 * MS > begin


def test_a_turn_that_goes_on_congests_slices_too():
    health = loop_health(
        totals([], 0, closed_ns=None, busy_since_ns=S, slices_congested=2), now_ns=2 * S - 50 * MS
    )
    assert (health.slices, health.slices_congested) == (20, 2 + 9)
    assert health.histogram == ((950 * MS, 1),)


def test_shares_of_delays_are_those_of_the_quantiles():
    health = loop_health(totals([20 * MS] * 30 + [S, S, S], 60 * S), now_ns=0)
    shares = delay_shares(health, [0, health.delay_p90_ns, health.delay_p99_ns, 2 * S])
    assert shares == pytest.approx([3.6 / 60, 0.06, 0.01, 0], abs=0.001)


# ---- without a group -----------------------------------------------------------------------------


def test_delays_without_stalls_are_those_of_other_turns():
    rest = [20 * MS] * 30
    health = loop_health(totals([*rest, S, S, S], 60 * S), now_ns=0)
    assert delay_without(health, [(S, S)] * 3) == pytest.approx(0, abs=MS)
    only_rest = loop_health(totals(rest, 60 * S), now_ns=0)
    assert delay_without(health, [(S, S)] * 3, 0.999) == pytest.approx(only_rest.delay_p999_ns, rel=0.07)


def test_what_is_left_of_a_turn_stays():
    assert turns_without([(1_000.0, 1), (10.0, 5)], [(700, 700)]) == [(10.0, 5), (300.0, 1)]


def test_a_turn_keeps_what_is_not_taken_of_its_stall():
    assert turns_without([(1_000.0, 1), (400.0, 2)], [(1_000, 600)]) == [(400.0, 2), (400.0, 1)]


def test_a_stall_leaves_the_shortest_turn_that_fits():
    assert turns_without([(1_000.0, 1), (500.0, 2)], [(510, 510)]) == [(500.0, 1), (1_000.0, 1)]


def test_stalls_take_no_more_than_the_histogram_has():
    assert turns_without([(100.0, 1)], [(900, 900)] * 2) == []


@given(
    st.lists(st.integers(10 * MS, 2 * S), min_size=1, max_size=20),
    st.lists(st.integers(200 * MS, 2 * S), min_size=1, max_size=8),
)
def test_without_agrees_with_a_loop_that_did_not_stall(others, stalls):
    window = 4 * (sum(others) + sum(stalls))
    with_stalls = loop_health(totals([*others, *stalls], window), now_ns=0)
    plain = loop_health(totals(others, window), now_ns=0)
    margin = 2 * BUCKET_WIDTH * max(*others, *stalls) + MS
    assert delay_without(with_stalls, [(stall, stall) for stall in stalls]) == pytest.approx(
        plain.delay_p99_ns, abs=margin
    )
