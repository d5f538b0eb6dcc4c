"""The gamma and beta distributions, from which all intervals of a comparison are made.

Formulas of the Digital Library of Mathematical Functions (dlmf.nist.gov): 8.7.1 and 8.9.2 for the incomplete
gamma function, 8.17.22 for the incomplete beta function, both continued fractions by the method of Lentz as
modified by Thompson and Barnett (J. Comput. Phys. 64, 1986, 490). Quantiles by Newton's method within a
bracket that halves where a step would leave it. Relative error about 1e-10.
"""

from __future__ import annotations

from math import exp, inf, lgamma, log, log1p
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_STEPS_MAX = 100_000
"""Of a series or fraction; they need about the square root of the shape."""
_ROUNDS_MAX = 200
"""Of a quantile."""
_PRECISION = 1e-14
_TINY = 1e-300


def gamma_share(shape: float, x: float) -> float:
    """P(X <= x) of a gamma distribution of this shape and scale 1."""
    if x <= 0:
        return 0.0
    front = exp(shape * log(x) - x - lgamma(shape))
    if x > shape + 1:
        return 1.0 - front * _fraction(_gamma_terms(shape, x))
    term = total = 1.0 / shape
    for step in range(1, _STEPS_MAX):
        term *= x / (shape + step)
        total += term
        if term < total * _PRECISION:
            break
    return min(front * total, 1.0)


def beta_share(a: float, b: float, x: float) -> float:
    """P(X <= x) of a beta distribution."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - beta_share(b, a, 1 - x)
    front = exp(a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)) / a
    return min(front * _fraction(_beta_terms(a, b, x)), 1.0)


def gamma_quantile(shape: float, share: float) -> float:
    """The x that a gamma distribution of this shape and scale 1 stays within with this probability."""
    top = shape + 1.0
    while gamma_share(shape, top) < share:
        top *= 2.0
    return _solved(
        lambda x: gamma_share(shape, x) - share,
        lambda x: exp((shape - 1) * log(x) - x - lgamma(shape)),
        top,
    )


def beta_quantile(a: float, b: float, share: float) -> float:
    """The x that a beta distribution stays within with this probability."""
    norm = lgamma(a + b) - lgamma(a) - lgamma(b)
    return _solved(
        lambda x: beta_share(a, b, x) - share,
        lambda x: exp((a - 1) * log(x) + (b - 1) * log1p(-x) + norm) if x < 1 else 0.0,
        1.0,
    )


def _solved(excess: Callable[[float], float], slope: Callable[[float], float], top: float) -> float:
    """Where `excess`, which rises from 0 to `top`, is 0."""
    low, high = 0.0, top
    x = top / 2
    for _ in range(_ROUNDS_MAX):
        found = excess(x)
        if found > 0:
            high = x
        else:
            low = x
        steep = slope(x)
        following = x - found / steep if steep > _TINY else inf
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - x) <= 1e-12 * x or high - low <= _TINY:
            return following
        x = following
    return x


def _gamma_terms(shape: float, x: float) -> Iterator[tuple[float, float]]:
    """DLMF 8.9.2 in its even form: of P(X > x) / (x^shape e^-x / Gamma(shape))."""
    yield 1.0, x + 1.0 - shape
    for step in range(1, _STEPS_MAX):
        yield -step * (step - shape), x + 2 * step + 1 - shape


def _beta_terms(a: float, b: float, x: float) -> Iterator[tuple[float, float]]:
    """DLMF 8.17.22."""
    yield 1.0, 1.0
    for step in range(_STEPS_MAX):
        yield -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1)), 1.0
        half = step + 1
        yield half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half)), 1.0


def _fraction(terms: Iterator[tuple[float, float]]) -> float:
    """The continued fraction of these (numerator, denominator) terms."""
    value, upper, lower = _TINY, _TINY, 0.0
    for numerator, denominator in terms:
        lower = 1.0 / _not_zero(denominator + numerator * lower)
        upper = _not_zero(denominator + numerator / upper)
        value *= upper * lower
        if abs(upper * lower - 1.0) < _PRECISION:
            break
    return value


def _not_zero(number: float) -> float:
    return number if abs(number) > _TINY else _TINY
