"""How much of something there was per watched hour, with intervals that hold what they promise.

Stalls of one group are taken as a compound Poisson process: they come at random, each brings its duration.
The interval of such a weighted sum is that of Fay and Feuer (Statistics in Medicine 16, 1997, 791), which for
equal weights is the exact one of Garwood (Biometrika 28, 1936, 437); the interval of a ratio of two is that
of Fay (Communications in Statistics, Theory and Methods 28, 1999, 2141), which for equal weights is the exact
conditional one. Both err on the wide side. `chance` has their quantiles.

Stalls come in clusters, though: a burst of load, a cron job. So their variance is measured over slices of the
watched time, and where it is larger than a Poisson process would have, it is the variance that counts
(quasi-likelihood: Wedderburn, Biometrika 61, 1974, 439).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from loopcanary.late_dataclass import dataclass
from loopcanary.report.figures.chance import gamma_high, gamma_low, quotient_high, quotient_low
from loopcanary.report.figures.watched import Watched

SLICES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Bounds within which the truth lies with probability LEVEL. `high` may be infinite."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What a group took in the watched time. Weights are durations in seconds, or 1 for a mere count."""

    count: int
    total: float
    squares: float
    largest: float
    dispersion: float
    """Variance over slices of watched time in units of a Poisson process's; at least 1."""
    hours: float

    @property
    def per_hour(self) -> float:
        """The total per watched hour; 0 where nothing was watched."""
        return self.total / self.hours if self.hours else 0.0


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
    """The variance of the sums over slices against that of a compound Poisson process, whose sum has the
    squares of its weights as variance. `parts`: the slices fall into so many, each with a mean of its own."""
    size = len(sums) // parts
    spread = 0.0
    for begin in range(0, size * parts, size):
        part = sums[begin : begin + size]
        mean = sum(part) / size
        spread += sum((value - mean) ** 2 for value in part)
    freedom = len(sums) - parts
    return max(1.0, len(sums) / freedom * spread / squares) if squares and freedom > 0 else 1.0


def interval(one: Amount) -> Interval:
    """Of the amount per watched hour."""
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
    """Of the amount per hour after, in units of that before."""
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
    """Shape and scale of the gamma distribution of the lower bound."""
    variance = one.dispersion * one.squares
    return one.total**2 / variance, variance / one.total


def _upper(one: Amount, largest: float) -> tuple[float, float]:
    """The same of the upper bound: with one weight more, the largest there is."""
    weight = one.dispersion * largest
    total, variance = one.total + weight, one.dispersion * one.squares + weight * weight
    return total**2 / variance, variance / total
