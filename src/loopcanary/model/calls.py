"""Traced calls, in a stall or for a while: as a tree in one list, each row before those inside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, TypeVar

from loopcanary.late_dataclass import dataclass
from loopcanary.model.spelling import spelled
from loopcanary.model.stack_frame import StackFrame

if TYPE_CHECKING:
    from loopcanary.model.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """All calls of one function by one path of callers. The figures are exact: the thread notes each call."""

    frame: StackFrame = field(metadata=spelled(flat=True))
    """The function; `line`: where it begins, 0 unknown."""
    depth: int
    """How many rows this row is inside of."""
    calls: int
    total_ns: int
    """Time of the calls within the stall. A call that began before the stall counts from the stall's
    begin."""
    self_ns: int
    """The same time, without the traced calls inside this row."""
    open: bool = False
    """One of the calls had not returned when the stall, or its record, ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedWork:
    """The traced calls of a callback of a loop, or of all steps of a task."""

    name: str
    """Name of the callback's function. Empty: calls outside of callbacks, and of callbacks without a row
    here."""
    task: str | None = None
    """The task's name, if the program gave it one; else None."""
    times: int
    """How many callbacks or steps called a traced function."""
    total_ns: int
    """Time of the calls that it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCalls:
    """The traced calls of one thread in a stall."""

    rows: tuple[TracedCall, ...] = ()
    """Outermost first."""
    lost: int = 0
    """At least so many begins and ends of calls in the stall were overwritten before they were read."""
    left_out: int = 0
    """How many shorter rows were left out of `rows`."""
    left_out_ns: int = 0
    """Time of the rows that were left out, without the calls inside them."""
    work: tuple[TracedWork, ...] = ()
    """The same calls by callback or task, the longest first. Empty: no loop ran them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedCall:
    """One call by itself."""

    begin_ns: int
    """From the begin of the record."""
    length_ns: int
    frame: StackFrame
    """The function."""
    is_open: bool = False
    """It had not returned at the end of the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadCalls:
    """The calls of one thread while `loopcanary methods` traced them."""

    tid: int
    """As the kernel numbers it in its own namespace."""
    thread: str
    loop: str
    """Kind of its loop; empty: it has none."""
    calls: TracedCalls
    each: tuple[TimedCall, ...] = ()
    """The same calls one by one, each before the calls inside it; empty unless the command asked for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The calls that `loopcanary methods` recorded in a running program."""

    session: Session
    began_wall_ns: int
    duration_ns: int
    threads: tuple[ThreadCalls, ...]
    """Those that were traced and called something."""
    notices: tuple[str, ...] = ()
    """Sentences of the program about the recording, for people."""


_T = TypeVar("_T")


def parents(depths: Sequence[int]) -> list[int | None]:
    """For each row, the index of the row that it is inside of: the nearest one before it that is less deep,
    whatever the depths (they come from files). None: the row is outermost."""
    open_rows: list[int] = []
    found: list[int | None] = []
    for index, depth in enumerate(depths):
        while open_rows and depths[open_rows[-1]] >= depth:
            open_rows.pop()
        found.append(open_rows[-1] if open_rows else None)
        open_rows.append(index)
    return found


def levels(depths: Sequence[int]) -> list[int]:
    """For each row, how many rows it is inside of."""
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
    """For each row, the begin and length at which to draw it. Rows inside a row follow one another in it, and
    do not end behind it; outermost rows do not end behind `whole`."""
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
