"""How much of something there was per watched hour, with intervals that hold what they promise.

Stalls of one group are taken as a compound Poisson process: they come at random, each brings its duration.
The interval of such a weighted sum is that of Fay and Feuer (Statistics in Medicine 16, 1997, 791), which for
equal weights is the exact one of Garwood (Biometrika 28, 1936, 437); the interval of a ratio of two is that
of Fay (Communications in Statistics, Theory and Methods 28, 1999, 2141), which for equal weights is the exact
conditional one. Both err on the wide side.

Their quantiles are bounds of gamma distributions of scale 1 and of quotients of two, by formulas without
iteration: the cube root of a gamma variable is nearly normal (Wilson and Hilferty, PNAS 17, 1931, 684), which
for a quotient gives a quadratic equation (Paulson, Annals of Mathematical Statistics 13, 1942, 233).

Stalls come in clusters, though: a burst of load, a cron job. So their variance is measured over slices of the
watched time, and where it is larger than a Poisson process would have, it is the variance that counts
(quasi-likelihood: Wedderburn, Biometrika 61, 1974, 439).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb as choose
from math import erfc, exp, inf, lgamma, log, sqrt

from loopcanary.late_dataclass import dataclass
from loopcanary.report.figures.watched import Watched

LEVEL = 0.99
"""The level of every interval and test: at 0.95 one in twenty of the groups of a report would be wrong."""
_Z = 2.5758293035489004
"""A normal variable stays between -Z and Z with probability LEVEL."""
_TAIL = (1 - LEVEL) / 2
_SURE_LEAST = 0.3
"""With a smaller coefficient there are too few stalls for an upper bound of a quotient."""
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
    """The upper bound; infinite if there is too little to divide by."""
    first, middle, last = _coefficients(above, below)
    if first < _SURE_LEAST:
        return inf
    return float(((middle + sqrt(middle * middle - first * last)) / first) ** 3)


def _coefficients(above: float, below: float) -> tuple[float, float, float]:
    """The cube roots of the bounds solve first * x^2 - 2 * middle * x + last = 0."""
    a, b = 1 / (9 * above), 1 / (9 * below)
    return (1 - b) ** 2 - _Z * _Z * b, (1 - a) * (1 - b), (1 - a) ** 2 - _Z * _Z * a


def chance_of_halves(first: float, last: float) -> float:
    """How often chance alone divides them as unevenly, or more so, between two equal halves: two-sided, and
    exact for up to 1,000 stalls. The numbers are rounded."""
    least, most = sorted((round(first), round(last)))
    number = least + most
    if number > _COUNTED_MAX:
        return erfc(max(most - least - 1, 0) / sqrt(2 * number))
    return min(1.0, float(2 * sum(choose(number, one) for one in range(most, number + 1)) / 2**number))


SLICES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Bounds within which the truth lies with probability LEVEL. `high` may be infinite."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """The sum of a group in the watched time. Weights are durations in seconds, or 1 for a count."""

    count: int
    total: float
    squares: float
    largest: float
    dispersion: float
    """The variance over slices of watched time, in units of a Poisson process's; at least 1."""
    hours: float

    @property
    def per_hour(self) -> float:
        """The total per watched hour; 0 where nothing was watched."""
        return self.total / self.hours if self.hours else 0.0

    @property
    def count_per_hour(self) -> float:
        return self.count / self.hours if self.hours else 0.0


def amount(marks: Sequence[tuple[int, float]], watched: Watched) -> Amount:
    """The sum of (wall time, weight) marks."""
    weights = [weight for _, weight in marks]
    squares = sum(weight * weight for weight in weights)
    return Amount(
        count=len(weights),
        total=sum(weights),
        squares=squares,
        largest=max(weights, default=0.0),
        dispersion=dispersion(watched.slices(SLICES).sums(marks), squares) if len(weights) > 1 else 1.0,
        hours=watched.hours,
    )


def dispersion(sums: Sequence[float], squares: float, parts: int = 1) -> float:
    """The variance of the sums over slices against that of a compound Poisson process, which is the sum of
    the squares of its weights. The slices fall into `parts`, each with a mean of its own."""
    size = len(sums) // parts
    spread = 0.0
    for begin in range(0, size * parts, size):
        part = sums[begin : begin + size]
        mean = sum(part) / size
        spread += sum((value - mean) ** 2 for value in part)
    freedom = len(sums) - parts
    return max(1.0, len(sums) / freedom * spread / squares) if squares and freedom > 0 else 1.0


def interval(one: Amount) -> Interval:
    """The interval of the amount per watched hour."""
    if not one.hours:
        return Interval(low=0.0, high=inf)
    low, high = 0.0, inf
    if one.count:
        shape, scale = _lower(one)
        low = gamma_low(shape) * scale
    if one.largest:
        shape, scale = _upper(one, one.largest)
        high = gamma_high(shape) * scale
    return Interval(low=low / one.hours, high=high / one.hours)


def ratio(before: Amount, after: Amount) -> Interval:
    """The interval of the amount per hour after, in units of that before."""
    if not (before.hours and after.hours):
        return Interval(low=0.0, high=inf)
    # Where there was none, one more would have been as large as those of the other side.
    largest = before.largest or after.largest, after.largest or before.largest
    exposure = before.hours / after.hours
    low, high = 0.0, inf
    if after.count:
        (a, a_scale), (b, b_scale) = _lower(after), _upper(before, largest[0])
        low = quotient_low(a, b) * (a * a_scale) / (b * b_scale) * exposure
    if before.count:
        (a, a_scale), (b, b_scale) = _upper(after, largest[1]), _lower(before)
        high = quotient_high(a, b) * (a * a_scale) / (b * b_scale) * exposure
    return Interval(low=low, high=high)


def _lower(one: Amount) -> tuple[float, float]:
    """The shape and scale of the lower bound's gamma distribution."""
    variance = one.dispersion * one.squares
    return one.total**2 / variance, variance / one.total


def _upper(one: Amount, largest: float) -> tuple[float, float]:
    """The same for the upper bound: with one weight more, the largest."""
    weight = one.dispersion * largest
    total, variance = one.total + weight, one.dispersion * one.squares + weight * weight
    return total**2 / variance, variance / total
