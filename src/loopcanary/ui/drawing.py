"""Numbers to shapes: sparklines, stacks over time, heat maps. Pure; units are those of an SVG's own box."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from math import log

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue

_STEPS_NS = tuple(
    seconds * 1_000_000_000
    for seconds in (
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200,
        86_400, 172_800, 604_800, 1_209_600, 2_592_000,
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeScale:
    """Equal spans of wall time."""

    begin_wall_ns: int
    step_ns: int
    cells: int

    @property
    def end_wall_ns(self) -> int:
        return self.begin_wall_ns + self.cells * self.step_ns

    def moment(self, cell: int) -> int:
        return self.begin_wall_ns + cell * self.step_ns


def exact_scale(first_wall_ns: int, last_wall_ns: int, cells: int) -> TimeScale:
    """So many spans over just this time."""
    length = max(last_wall_ns - first_wall_ns, 0) + 1
    return TimeScale(begin_wall_ns=first_wall_ns, step_ns=max(-(-length // cells), 1), cells=cells)


def round_scale(first_wall_ns: int, last_wall_ns: int, *, least: int, most: int) -> TimeScale:
    """A scale of `least` to `most` spans of a round length, which begin at multiples of it. Too short a time
    is at the end."""
    length = max(last_wall_ns - first_wall_ns, 1)
    step = next((step for step in _STEPS_NS if length // step + 2 <= most), None)
    if step is None:
        step = -(-length // (most - 2) // _STEPS_NS[-1]) * _STEPS_NS[-1] or _STEPS_NS[-1]
    end = last_wall_ns // step + 1
    begin = min(first_wall_ns // step, end - least)
    return TimeScale(begin_wall_ns=begin * step, step_ns=step, cells=end - begin)


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    width: float
    height: float


def spark_bars(values: Sequence[int], width: float, height: float) -> tuple[Bar, ...]:
    """A bar for each value, the largest as high as the box; only 0 has no bar."""
    most = max(values, default=0)
    if most <= 0:
        return ()
    step = width / len(values)
    bars = []
    for index, value in enumerate(values):
        if value > 0:
            tall = max(height * value / most, 1.5)
            bars.append(
                Bar(round(index * step, 2), round(height - tall, 2), round(step - 0.5, 2), round(tall, 2))
            )
    return tuple(bars)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCell:
    """How many stalls of one span of time were of one length."""

    column: int
    row: int
    count: int
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Time from left to right, length from below to above, on a logarithmic scale."""

    scale: TimeScale
    edges_ns: tuple[int, ...]
    """The lower bounds of the rows, the shortest first."""
    top_ns: int | None
    """The upper bound of the last row, if it has one."""
    cells: tuple[HeatCell, ...]
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Where points are: time from left to right, length from below to above, on a logarithmic scale. All in
    per cent of the box, from its upper left corner."""

    points: tuple[tuple[float, float], ...]
    """The points of the marks, in their order."""
    ticks: tuple[tuple[float, int], ...]
    """Round lengths in ns, each after its height."""


_DECADE = (1, 2, 5)
_MARGIN = 4.0
"""Per cent of the box in which no point has its centre, so that all of it is drawn."""


def scatter(marks: Sequence[tuple[int, int]]) -> Scatter:
    """A point for each (wall time, duration in ns)."""
    rounds = [mantissa * 10**power for power in range(19) for mantissa in _DECADE]
    lengths = [min(max(duration, 1), rounds[-1]) for _, duration in marks]
    least, most = min(lengths, default=1), max(lengths, default=1)
    # From the last round length below all to the first above.
    low = max(bisect_right(rounds, least) - 1, 0)
    high = max(bisect_left(rounds, most), low + 1)
    bottom, top = log(rounds[low]), log(rounds[min(high, len(rounds) - 1)])
    first = min((moment for moment, _ in marks), default=0)
    whole = max((moment for moment, _ in marks), default=0) - first

    def place(share: float) -> float:
        return round(_MARGIN + (100 - 2 * _MARGIN) * min(max(share, 0.0), 1.0), 2)

    def height(length_ns: int) -> float:
        return place((top - log(length_ns)) / max(top - bottom, 1e-9))

    return Scatter(
        points=tuple(
            (place((moment - first) / whole if whole else 0.5), height(length))
            for (moment, _), length in zip(marks, lengths, strict=True)
        ),
        ticks=tuple((height(length), length) for length in rounds[low : high + 1]),
    )


LEVELS = 5
_EDGES_MS = (0, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000)


def heat_map(marks: Iterable[tuple[int, int]], columns: int) -> HeatMap | None:
    """A map of (wall time, duration in ns); None without any."""
    known = list(marks)
    if not known:
        return None
    moments = [moment for moment, _ in known]
    scale = exact_scale(min(moments), max(moments), columns)
    low, high = min(d for _, d in known) // 1_000_000, max(d for _, d in known) // 1_000_000
    edges = [
        edge
        for index, edge in enumerate(_EDGES_MS)
        if edge <= high and (index + 1 == len(_EDGES_MS) or _EDGES_MS[index + 1] > low)
    ]
    counts: dict[tuple[int, int], int] = {}
    for moment, duration_ns in known:
        row = max((index for index, edge in enumerate(edges) if edge * 1_000_000 <= duration_ns), default=0)
        cell = ((moment - scale.begin_wall_ns) // scale.step_ns, row)
        counts[cell] = counts.get(cell, 0) + 1
    most = max(counts.values())
    return HeatMap(
        scale=scale,
        edges_ns=tuple(edge * 1_000_000 for edge in edges),
        top_ns=next((edge * 1_000_000 for edge in _EDGES_MS if edge > edges[-1]), None),
        cells=tuple(
            HeatCell(column=column, row=row, count=count, level=level_of(count, most))
            for (column, row), count in sorted(counts.items())
        ),
        most=most,
    )


def level_of(count: int, most: int) -> int:
    """1 to LEVELS, logarithmic: one stall is seen beside a hundred."""
    return LEVELS if most <= 1 else 1 + round((LEVELS - 1) * log(count) / log(most))


POINTS_MAX = 200
_COLUMNS = 48
Mark = tuple[int, int]
"""The begin of an issue, and its length in ns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Issues by begin and length: a point for each, or a map of many."""

    issues: tuple[Issue, ...]
    points: Scatter | None
    heat: HeatMap | None
    first_wall_ns: int
    last_wall_ns: int


def spread(issues: Sequence[Issue], number: int, marks: Callable[[], Sequence[Mark]]) -> Spread | None:
    """The spread of `number` issues, of which `issues` are all or the latest POINTS_MAX; None for fewer than
    two. `marks` gives all of them in short, if there are too many for points."""
    if number < 2:
        return None
    if number <= min(len(issues), POINTS_MAX):
        found = [(one.began_wall_ns, one.duration_ns) for one in issues]
        points, heat = scatter(found), None
    else:
        found = list(marks())
        points, heat = None, heat_map(found, _COLUMNS)
    if not found:
        return None
    return Spread(
        issues=tuple(issues) if points is not None else (),
        points=points,
        heat=heat,
        first_wall_ns=min(began for began, _ in found),
        last_wall_ns=max(began for began, _ in found),
    )
