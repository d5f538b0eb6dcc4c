"""What one asks a store for, and what it answers with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple, TypeVar

from loopcanary.late_dataclass import dataclass
from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.stall import Cause, Culprit, Holder

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueQuery:
    """Conditions that all must hold; one left at its default does not restrict."""

    since_wall_ns: int | None = None
    """Began at this time or later."""
    until_wall_ns: int | None = None
    """Began before this time."""
    causes: frozenset[Cause] = frozenset()
    """Any of these; empty: every cause."""
    words: tuple[str, ...] = ()
    """Each occurs, in any case, in the title, callback, task, scene, thread, program or culprit."""
    session: str | None = None
    """Start of the session's id."""
    program: str | None = None
    """Runs of the program with just this name."""
    fingerprint: str | None = None
    scene: str | None = None
    """Just this scene; empty: none was known."""
    in_app: bool | None = None
    """Whether the culprit is the program's own code."""
    kind: IssueKind | None = None
    """Only this one."""
    other_than: IssueKind | None = None
    """Every kind but this one."""

    @property
    def stalls(self) -> IssueQuery:
        """The same conditions, for stalls only."""
        is_of_another = self.kind not in (None, IssueKind.STALL)
        return replace(self, kind=IssueKind.STALL, other_than=IssueKind.STALL if is_of_another else None)

    @property
    def others(self) -> IssueQuery:
        """The same conditions, for every kind but stalls."""
        return replace(self, other_than=IssueKind.STALL)


STALLS = IssueQuery(kind=IssueKind.STALL)
OTHERS = IssueQuery(other_than=IssueKind.STALL)


def of_type(wanted: type[_T], found: Iterable[object]) -> list[_T]:
    """Those of the issues found that are of this type."""
    return [one for one in found if isinstance(one, wanted)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over all that a query finds, also over what is not shown."""

    issues: int
    groups: int
    """Number of different fingerprints."""
    total_ns: int
    first_wall_ns: int | None = None
    """When the first one began; None: nothing was found, or nothing says it."""
    end_wall_ns: int | None = None
    """When the last one ended; None: nothing was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueGroup:
    """All issues with one fingerprint: one bug.

    Title, cause, culprit, holder and advice are those of its longest issue; of stalls with several causes, of
    the longest with the cause that most of the time speaks for, weighed by how sure that is.
    """

    fingerprint: str
    kind: IssueKind
    title: str
    cause: Cause
    count: int
    total_ns: int
    p50_ns: int
    max_ns: int
    first_wall_ns: int
    last_wall_ns: int
    culprit: Culprit | None
    worst_id: str
    """The longest issue of the group."""
    advice: str | None = None
    """What helps; None: nothing is known to."""
    holder: Holder | None = None
    """The thread that held the GIL or lock, where its line is the bug."""

    @property
    def blamed(self) -> Culprit | None:
        """The line to change."""
        return self.culprit if self.holder is None else self.holder.culprit


class GroupSums(NamedTuple):
    """A group in short."""

    fingerprint: str
    issues: int
    """Their number."""
    total_ns: int
    end_wall_ns: int
    """When the last of them ended."""


IssueTime = tuple[str, str, int, int]
"""Fingerprint, session, began_wall_ns and duration_ns of an issue: what comparisons are made of. Plain: to
make named ones of 100,000 takes as long as to read them."""


class IssueMark(NamedTuple):
    """An issue in short: what rates, trends and comparisons are made of."""

    fingerprint: str
    session: str
    thread: str
    loop: str
    began_wall_ns: int
    duration_ns: int


class SessionMark(NamedTuple):
    """A session in short."""

    id: str
    name: str
    version: str
    """Empty where the program's settings give none."""
    started_wall_ns: int
    ended_wall_ns: int | None
    killed: bool = False
    """It did not come to an end of its own."""


class TimeCell(NamedTuple):
    """What issues of one key (a fingerprint, a cause) took in one of several equal spans of wall time."""

    key: str
    cell: int
    """Which span, from 0."""
    issues: int
    """Those that began in it."""
    total_ns: int
    """Time of issues in it."""


def time_in_cells(
    span_wall_ns: tuple[int, int], begin_wall_ns: int, step_ns: int, cells: int
) -> Iterator[tuple[int, int]]:
    """The cells that the time between two moments covers, each with the time in it. There are `cells` cells
    of `step_ns` from `begin_wall_ns` on; time outside of them is left out."""
    low, high = max(span_wall_ns[0], begin_wall_ns), min(span_wall_ns[1], begin_wall_ns + cells * step_ns)
    while low < high:
        cell = (low - begin_wall_ns) // step_ns
        edge = min(begin_wall_ns + (cell + 1) * step_ns, high)
        yield cell, edge - low
        low = edge


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A person's note on a bug, and whether lists leave the bug out."""

    ignored: bool = False
    """It is known, and lists leave it out."""
    note: str = ""
