"""Issues by when they began and how long they took: a point for each, or a map of many."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue
from loopcanary.ui.drawing import HeatMap, Scatter, heat_map, scatter

POINTS_MAX = 200
_COLUMNS = 48
Mark = tuple[int, int]
"""When an issue began, and its length in ns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What the template draws: either points or a map."""

    issues: tuple[Issue, ...]
    """Of the points, in their order."""
    points: Scatter | None
    heat: HeatMap | None
    first_wall_ns: int
    last_wall_ns: int


def spread(issues: Sequence[Issue], number: int, marks: Callable[[], Sequence[Mark]]) -> Spread | None:
    """Of `number` issues; None of fewer than two.

    Args:
        issues: All of them, or the latest POINTS_MAX.
        number: How many there are.
        marks: All of them in short; asked for where there are too many for points.
    """
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
