"""Watched time, rates, their ranges, and trends: against exact results and against simulation."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcanary.model.search import SessionMark
from loopcanary.report.figures.rates import (
    LEVEL,
    Amount,
    amount,
    chance_of_halves,
    dispersion,
    interval,
    ratio,
)
from loopcanary.report.figures.trend import Direction, trend
from loopcanary.report.figures.watched import HOUR_NS, NEVER, Watched

TEN_HOURS = Watched(((0, 10 * HOUR_NS),))


def ran(begin: int, end: int | None) -> SessionMark:
    return SessionMark("s", "shop", "", begin, end)


# ---- watched time --------------------------------------------------------------------------------


def test_sessions_add_up_and_one_that_runs_is_watched_until_now() -> None:
    assert Watched.by([ran(0, 10), ran(5, None)], 20).total_ns == 25
    assert Watched.by([], 20) == NEVER


def test_only_what_lies_in_the_time_asked_for_is_watched() -> None:
    watched = Watched.by([ran(0, 10), ran(20, 30), ran(90, 95)], 100, since_wall_ns=5, until_wall_ns=25)
    assert watched.spans == ((5, 10), (20, 25))


@given(
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 5_000)), min_size=1, max_size=8),
    st.integers(2, 16),
)
def test_in_each_slice_as_much_was_watched(spans: list[tuple[int, int]], number: int) -> None:
    watched = Watched(tuple(sorted((begin, begin + length) for begin, length in spans)))
    edges = [-math.inf, *watched.slices(number).cuts, math.inf]
    assert len(edges) == number + 1
    for low, high in pairwise(edges):
        inside = sum(max(0, min(end, high) - max(begin, low)) for begin, end in watched.spans)
        assert inside == pytest.approx(watched.total_ns / number, abs=1e-3)


def test_a_moment_between_two_runs_belongs_to_the_later_slice() -> None:
    slices = Watched(((0, 100), (200, 300))).slices(2)
    assert slices.sums([(50, 1.0), (100, 2.0), (150, 4.0), (250, 8.0)]) == [1, 14]


# ---- ranges --------------------------------------------------------------------------------------


def counted(number: int, watched: Watched = TEN_HOURS, dispersed: float = 1.0) -> Amount:
    """As many stalls of one second."""
    return Amount(
        count=number,
        total=number,
        squares=number,
        largest=min(number, 1),
        dispersion=dispersed,
        hours=watched.hours,
    )


@pytest.mark.parametrize(
    ("number", "low", "high"),
    # Exact limits of a Poisson mean at 99 %: E. Garwood, Biometrika 28 (1936), table I.
    [(1, 0.005, 7.43), (2, 0.103, 9.27), (5, 1.08, 14.15), (10, 3.72, 21.40), (30, 17.77, 47.21)],
)
def test_the_range_of_a_mere_count_is_near_the_exact_one(number: int, low: float, high: float) -> None:
    found = interval(counted(number))
    assert (10 * found.low, 10 * found.high) == (
        pytest.approx(low, rel=0.05),
        pytest.approx(high, rel=0.01),
    )


@given(st.integers(1, 500), st.integers(1, 500))
def test_the_ratio_of_counts_agrees_with_the_exact_test(first: int, last: int) -> None:
    """Both are about the same question; where it is a close one, they may differ."""
    found = ratio(counted(first), counted(last))
    differs = found.low > 1 or found.high < 1
    chance = chance_of_halves(first, last)
    assert differs == (chance < 1 - LEVEL) or 0.5 < chance / (1 - LEVEL) < 1.5


def test_bounds_need_stalls_and_watched_time() -> None:
    found = ratio(counted(0), counted(7))
    assert found.low > 0
    assert found.high == math.inf
    assert ratio(counted(7), counted(0)).low == 0
    assert interval(counted(7, NEVER)).high == math.inf
    assert ratio(counted(7, NEVER), counted(7)).low == 0


@given(st.integers(1, 200), st.floats(1, 50))
def test_stalls_in_clusters_have_a_wider_range(number: int, dispersed: float) -> None:
    alone, clustered = interval(counted(number)), interval(counted(number, dispersed=dispersed))
    assert clustered.low <= alone.low * (1 + 1e-9)
    assert clustered.high >= alone.high * (1 - 1e-9)


def test_twice_as_long_stalls_are_twice_the_amount() -> None:
    marks = [(k * HOUR_NS // 4, 0.25 + k % 3) for k in range(40)]
    once, twice = amount(marks, TEN_HOURS), amount([(at, 2 * weight) for at, weight in marks], TEN_HOURS)
    assert interval(twice).low == pytest.approx(2 * interval(once).low)
    assert interval(twice).high == pytest.approx(2 * interval(once).high)


def test_dispersion_is_the_size_of_clusters() -> None:
    assert dispersion([3.0] * 16, squares=48) == 1
    assert dispersion([10.0] + [0.0] * 15, squares=10) == pytest.approx(10)


def arrivals(chance: random.Random, per_hour: float, cluster: int) -> Iterator[tuple[int, float]]:
    """Clusters of stalls at random moments of ten hours, each stall of a random length."""
    at = 0.0
    while (at := at + chance.expovariate(per_hour / cluster)) < 10:
        for _ in range(cluster):
            yield int(at * HOUR_NS), chance.lognormvariate(0, 0.7)


@pytest.mark.parametrize(("per_hour", "cluster"), [(2, 1), (20, 1), (40, 4)])
def test_ranges_hold_what_they_promise(per_hour: float, cluster: int) -> None:
    """In 200 simulated pairs of runs with the same true rate, 2 are expected outside of the range."""
    chance = random.Random(1)
    true = per_hour * math.exp(0.7**2 / 2)
    missed = differ = moved = 0
    for _ in range(200):
        before, after = (list(arrivals(chance, per_hour, cluster)) for _ in range(2))
        found = interval(amount(before, TEN_HOURS))
        missed += not found.low <= true <= found.high
        between = ratio(amount(before, TEN_HOURS), amount(after, TEN_HOURS))
        differ += not between.low <= 1 <= between.high
        moved += trend((at for at, _ in before), TEN_HOURS).direction in (Direction.RISING, Direction.FALLING)
    assert missed <= 8
    assert differ <= 8
    assert moved <= 8


def test_a_rate_that_tripled_is_seen() -> None:
    chance = random.Random(2)
    before, after = list(arrivals(chance, 10, 1)), list(arrivals(chance, 30, 1))
    assert ratio(amount(before, TEN_HOURS), amount(after, TEN_HOURS)).low > 1


# ---- trend ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "last", "direction"),
    [
        (0, 7, Direction.TOO_FEW),
        (0, 8, Direction.RISING),
        (8, 0, Direction.FALLING),
        (2, 8, Direction.STEADY),
        (20, 20, Direction.STEADY),
        (30, 60, Direction.RISING),
        (0, 0, Direction.TOO_FEW),
    ],
)
def test_directions(first: int, last: int, direction: Direction) -> None:
    half = 5 * HOUR_NS
    moments = [half * k // max(first, 1) for k in range(first)]
    moments += [half + half * k // max(last, 1) + 1 for k in range(last)]
    found = trend(moments, TEN_HOURS)
    assert (found.direction, found.first, found.last) == (direction, first, last)


def test_one_burst_of_load_is_no_trend() -> None:
    burst = [9 * HOUR_NS + k * 1_000_000_000 for k in range(50)]
    assert trend(burst, TEN_HOURS).direction is Direction.TOO_FEW


def test_nothing_watched_has_no_trend() -> None:
    assert trend([1, 2, 3], NEVER).direction is Direction.TOO_FEW
