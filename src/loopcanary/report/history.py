"""Stalled time over the wall time, drawn in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_BLOCKS = " ▁▂▃▄▅▆▇█"
_PLAIN = " .:-=+*#@"


def sums_over_time(marks: Sequence[tuple[int, int]], cells: int) -> list[int]:
    """The sum of the values in each of so many equal spans, of (wall time, value) marks in order of time."""
    first, last = marks[0][0], marks[-1][0]
    found = [0] * cells
    for moment, value in marks:
        found[min((moment - first) * cells // max(last - first, 1), cells - 1)] += value
    return found


def bars(marks: Sequence[tuple[int, int]], cells: int, *, unicode: bool) -> str:
    """One character a span, the higher the more; a span with anything in it shows."""
    levels = _BLOCKS if unicode else _PLAIN
    sums = sums_over_time(marks, cells)
    most = max(sums)
    return "".join(levels[-(-value * (len(levels) - 1) // most)] for value in sums) if most > 0 else ""
