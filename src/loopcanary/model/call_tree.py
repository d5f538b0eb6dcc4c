"""Trees in one list, each row before those inside it: which is inside which, and what to leave out.

Depths may be anything (they come from files): a row is inside the nearest row before it that is less deep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def parents(depths: Sequence[int]) -> list[int | None]:
    """Of each row the index of the one that it is inside of; None: of none."""
    open_rows: list[int] = []
    found: list[int | None] = []
    for index, depth in enumerate(depths):
        while open_rows and depths[open_rows[-1]] >= depth:
            open_rows.pop()
        found.append(open_rows[-1] if open_rows else None)
        open_rows.append(index)
    return found


def levels(depths: Sequence[int]) -> list[int]:
    """Of each row how many rows it is inside of."""
    found: list[int] = []
    for above in parents(depths):
        found.append(0 if above is None else found[above] + 1)
    return found


def heaviest(
    rows: Sequence[_T], most: int, *, depth: Callable[[_T], int], weight: Callable[[_T], int]
) -> list[int]:
    """Indices, in order, of at most `most` rows: those with most weight, and none without the rows that it
    is inside of."""
    if len(rows) <= most:
        return list(range(len(rows)))
    above = parents([depth(row) for row in rows])
    kept: set[int] = set()
    for index in sorted(range(len(rows)), key=lambda index: (-weight(rows[index]), index)):
        path: list[int] = []
        at: int | None = index
        room = most - len(kept)
        while at is not None and at not in kept and len(path) <= room:
            path.append(at)
            at = above[at]
        if len(path) <= room:
            kept.update(path)
    return sorted(kept)


def places(depths: Sequence[int], lengths: Sequence[int], whole: int) -> list[tuple[int, int]]:
    """Of each row a begin and a length, drawn one after the other in the row that it is inside of: none ends
    behind that one, and the outermost not behind `whole`."""
    around = len(lengths)
    free = [0] * (around + 1)
    ends = [0] * around + [max(whole, 0)]
    found: list[tuple[int, int]] = []
    for index, (above, length) in enumerate(zip(parents(depths), lengths, strict=True)):
        outer = around if above is None else above
        begin = free[outer]
        end = min(begin + max(length, 0), ends[outer])
        free[outer] = ends[index] = end
        free[index] = begin
        found.append((begin, end - begin))
    return found
