"""Bounds of gamma distributions of scale 1 and of their quotients, by formulas without iteration.

The cube root of a gamma variable is nearly normal (Wilson and Hilferty, PNAS 17, 1931, 684). For the quotient
of two that gives a quadratic equation (Paulson, Annals of Mathematical Statistics 13, 1942, 233).
"""

from __future__ import annotations

from math import comb as choose
from math import erfc, exp, inf, lgamma, log, sqrt

LEVEL = 0.99
"""Of every interval and test: reports list many groups, and at 0.95 one in twenty would be wrong."""
_Z = 2.5758293035489004
"""A normal variable stays between -Z and Z with probability LEVEL."""
_TAIL = (1 - LEVEL) / 2
_SURE_LEAST = 0.3
"""A smaller coefficient comes of so few stalls that the upper bound of a quotient would say nothing."""
_COUNTED_MAX = 1_000


def gamma_low(shape: float) -> float:
    """A gamma variable is smaller with probability (1 - LEVEL) / 2."""
    # The first term of the distribution's series: too small everywhere, and nearly exact for few stalls.
    few = exp((log(_TAIL) + lgamma(shape + 1)) / shape)
    return max(few, _cubed(shape, -_Z))


def gamma_high(shape: float) -> float:
    """A gamma variable is larger with probability (1 - LEVEL) / 2."""
    return _cubed(shape, _Z)


def _cubed(shape: float, z: float) -> float:
    return float(shape * max(1 - 1 / (9 * shape) + z / (3 * sqrt(shape)), 0.0) ** 3)


def quotient_low(above: float, below: float) -> float:
    """The lower bound of the quotient of two gamma variables of these shapes, each divided by its mean."""
    first, middle, last = _coefficients(above, below)
    if last <= 0:
        return 0.0
    return float((last / (middle + sqrt(middle * middle - first * last))) ** 3)


def quotient_high(above: float, below: float) -> float:
    """The upper bound; infinite where there is too little to divide by."""
    first, middle, last = _coefficients(above, below)
    if first < _SURE_LEAST:
        return inf
    return float(((middle + sqrt(middle * middle - first * last)) / first) ** 3)


def _coefficients(above: float, below: float) -> tuple[float, float, float]:
    """Of first * x^2 - 2 * middle * x + last = 0, whose solutions are the bounds' cube roots."""
    a, b = 1 / (9 * above), 1 / (9 * below)
    return (1 - b) ** 2 - _Z * _Z * b, (1 - a) * (1 - b), (1 - a) ** 2 - _Z * _Z * a


def chance_of_halves(first: float, last: float) -> float:
    """How often chance alone divides as many, or more, unevenly between two equal halves.

    Two-sided; exact for up to 1,000 stalls. Numbers are rounded.
    """
    least, most = sorted((round(first), round(last)))
    number = least + most
    if number > _COUNTED_MAX:
        return erfc(max(most - least - 1, 0) / sqrt(2 * number))
    return min(1.0, float(2 * sum(choose(number, one) for one in range(most, number + 1)) / 2**number))
