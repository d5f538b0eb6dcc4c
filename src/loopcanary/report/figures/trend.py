"""A bug's stalls over the time: whether they become more or fewer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model.spelling import spelled
from loopcanary.report.figures.rates import LEVEL, SLICES, chance_of_halves, dispersion
from loopcanary.report.figures.watched import Watched


class Direction(Enum):
    """What the two halves of the watched time show."""

    RISING = "rising"
    STEADY = "steady"
    """No change that chance alone would not make as well."""
    FALLING = "falling"
    TOO_FEW = "too few"
    """So few that even all of them in one half would show nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The last half of the watched time against the first."""

    direction: Direction
    first: int = field(metadata=spelled(name="first_half"))
    """Stalls in the first half."""
    last: int = field(metadata=spelled(name="last_half"))


_TREND_WORDS = {
    Direction.RISING: "rising",
    Direction.FALLING: "falling",
    Direction.STEADY: "no sure change",
}


def trend(moments: Iterable[int], watched: Watched) -> Trend:
    """The trend of stalls that began at these wall times."""
    sums = watched.slices(SLICES).sums((moment, 1.0) for moment in moments)
    half = len(sums) // 2
    first, last = sum(sums[:half]), sum(sums[half:])
    # Ten stalls of one cluster are one event, not ten: what is divided by chance are clusters.
    clustered = dispersion(sums, first + last, parts=2) if len(sums) == SLICES else 1.0
    return Trend(
        direction=_direction(first / clustered, last / clustered), first=round(first), last=round(last)
    )


def _direction(first: float, last: float) -> Direction:
    if 2 * 0.5 ** (first + last) > 1 - LEVEL:
        return Direction.TOO_FEW
    if chance_of_halves(first, last) > 1 - LEVEL:
        return Direction.STEADY
    return Direction.RISING if last > first else Direction.FALLING


def trend_words(trend: Trend) -> str:
    if trend.direction is Direction.TOO_FEW:
        return "not enough stalls for a trend"
    halves = f"{trend.first:,} in the first half of the time, {trend.last:,} in the last"
    return f"{_TREND_WORDS[trend.direction]}: {halves}"


_CELLS = 60


def course(marks: Sequence[tuple[int, int]], cells: int = _CELLS) -> tuple[float, ...]:
    """The sums of (wall time, value) marks, in order, in equal spans; the largest sum is 1."""
    found = sums_over_time(marks, cells)
    most = max(found)
    return tuple(value / most if most > 0 else 0.0 for value in found)


def sums_over_time(marks: Sequence[tuple[int, int]], cells: int) -> list[int]:
    first, last = marks[0][0], marks[-1][0]
    found = [0] * cells
    for moment, value in marks:
        found[min((moment - first) * cells // max(last - first, 1), cells - 1)] += value
    return found
