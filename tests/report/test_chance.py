"""Bounds against tables of others, and a coin."""

from __future__ import annotations

import math

import pytest

from loopcanary.report.figures.rates import (
    chance_of_halves,
    gamma_high,
    gamma_low,
    quotient_high,
    quotient_low,
)


@pytest.mark.parametrize(
    ("shape", "low", "high"),
    # Half of chi-squared with twice as many degrees of freedom, at 0.005 and 0.995: Abramowitz and Stegun,
    # Handbook of Mathematical Functions, table 26.8.
    [
        (1, 0.00501, 5.298),
        (2, 0.1035, 7.430),
        (5, 1.0779, 12.594),
        (15, 6.8934, 26.836),
        (50, 33.664, 70.085),
    ],
)
def test_bounds_of_a_sum_are_near_the_exact_ones(shape: float, low: float, high: float) -> None:
    assert 0.92 * low <= gamma_low(shape) <= 1.001 * low
    assert gamma_high(shape) == pytest.approx(high, rel=0.02)


@pytest.mark.parametrize(
    ("above", "below", "high"),
    # F with twice as many degrees of freedom, at 0.995: the same book, table 26.9.
    [(5, 5, 5.847), (10, 5, 5.274), (5, 10, 3.847), (10, 10, 3.318), (30, 30, 1.962), (60, 60, 1.606)],
)
def test_bounds_of_a_quotient_are_near_the_exact_ones(above: float, below: float, high: float) -> None:
    assert 0.99 * high <= quotient_high(above, below) <= 1.04 * high
    assert quotient_low(below, above) == pytest.approx(1 / quotient_high(above, below))


def test_so_few_have_no_upper_bound_of_a_quotient() -> None:
    assert quotient_high(5, 1) == math.inf
    assert quotient_low(1, 5) == pytest.approx(0, abs=0.001)


def test_chance_of_halves_is_that_of_a_coin() -> None:
    assert chance_of_halves(0, 8) == pytest.approx(2 / 2**8)
    assert chance_of_halves(1, 9) == pytest.approx(2 * 11 / 2**10)
    assert chance_of_halves(5, 5) == 1


def test_a_coins_chance_has_no_step() -> None:
    assert chance_of_halves(460, 541) == pytest.approx(chance_of_halves(460, 540), rel=0.1)
