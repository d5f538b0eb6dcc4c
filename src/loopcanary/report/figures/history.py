"""Stalled time over the wall time."""

from __future__ import annotations

from collections.abc import Sequence

_CELLS = 60


def course(marks: Sequence[tuple[int, int]], cells: int = _CELLS) -> tuple[float, ...]:
    """The sums of equal spans, the largest being 1, of (wall time, value) marks in order of time."""
    found = sums_over_time(marks, cells)
    most = max(found)
    return tuple(value / most if most > 0 else 0.0 for value in found)


def sums_over_time(marks: Sequence[tuple[int, int]], cells: int) -> list[int]:
    """The sum of the values in each of so many equal spans."""
    first, last = marks[0][0], marks[-1][0]
    found = [0] * cells
    for moment, value in marks:
        found[min((moment - first) * cells // max(last - first, 1), cells - 1)] += value
    return found
