"""Distributions against closed forms, each other, and tables of others."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcanary.report.figures.chance import beta_quantile, beta_share, gamma_quantile, gamma_share

SHAPES = st.floats(0.1, 50_000)
SHARES = st.floats(0.001, 0.999)


@given(st.floats(0.001, 50))
def test_a_gamma_distribution_of_shape_1_is_exponential(x: float) -> None:
    assert gamma_share(1, x) == pytest.approx(-math.expm1(-x), rel=1e-9)


@given(st.integers(1, 200), st.floats(0.01, 300))
def test_a_gamma_distribution_of_whole_shape_is_a_tail_of_poisson_s(shape: int, x: float) -> None:
    below = math.fsum(math.exp(k * math.log(x) - x - math.lgamma(k + 1)) for k in range(shape))
    assert gamma_share(shape, x) == pytest.approx(1 - below, rel=1e-7, abs=1e-9)


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0.001, 0.999))
def test_a_beta_distribution_of_whole_shapes_is_a_tail_of_the_binomial(a: int, b: int, x: float) -> None:
    number = a + b - 1
    terms = (math.comb(number, k) * x**k * (1 - x) ** (number - k) for k in range(a, number + 1))
    assert beta_share(a, b, x) == pytest.approx(math.fsum(terms), rel=1e-7, abs=1e-12)


@given(SHAPES, SHARES)
def test_a_gamma_quantile_leaves_its_share_below(shape: float, share: float) -> None:
    assert gamma_share(shape, gamma_quantile(shape, share)) == pytest.approx(share, rel=1e-6)


@given(SHAPES, SHAPES, SHARES)
def test_a_beta_quantile_leaves_its_share_below(a: float, b: float, share: float) -> None:
    # It is found to 1e-12 of itself, and near 1 the share may change much over that.
    found = beta_quantile(a, b, share)
    close = 2e-12 * found
    below, above = beta_share(a, b, found - close), beta_share(a, b, min(1.0, found + close))
    assert below * (1 - 1e-5) <= share <= above * (1 + 1e-5)


@pytest.mark.parametrize(
    ("share", "freedom", "chi_squared"),
    # Abramowitz and Stegun, Handbook of Mathematical Functions, table 26.8.
    [
        (0.975, 2, 7.37776),
        (0.025, 20, 9.59078),
        (0.975, 22, 36.7807),
        (0.995, 1, 7.87944),
        (0.5, 10, 9.34182),
    ],
)
def test_quantiles_of_chi_squared(share: float, freedom: int, chi_squared: float) -> None:
    assert 2 * gamma_quantile(freedom / 2, share) == pytest.approx(chi_squared, rel=1e-5)


@pytest.mark.parametrize(("x", "share"), [(0.0, 0.0), (-1.0, 0.0), (1.0, 1.0), (2.0, 1.0)])
def test_outside_of_its_range_a_beta_distribution_has_nothing(x: float, share: float) -> None:
    assert beta_share(2, 3, x) == share
