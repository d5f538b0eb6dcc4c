"""Queries to a store, and the values that it answers with."""

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
    """Runs of the program with exactly this name."""
    fingerprint: str | None = None
    scene: str | None = None
    """Exactly this scene; empty: issues without a known scene."""
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
    """The issues in `found` that are of this type."""
    return [one for one in found if isinstance(one, wanted)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over all issues that a query finds, also over those that are not shown."""

    issues: int
    groups: int
    """Number of different fingerprints."""
    total_ns: int
    first_wall_ns: int | None = None
    """When the first issue began; None: no issue was found, or the time is not known."""
    end_wall_ns: int | None = None
    """When the last issue ended; None: no issue was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueGroup:
    """All issues with one fingerprint: one bug.

    Title, cause, culprit, holder and advice come from the longest issue. If the stalls have several causes,
    they come from the longest stall with the chief cause: the cause of most time, weighted by confidence.
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
    """What to do instead; None: no advice is known."""
    holder: Holder | None = None
    """The thread that held the GIL or lock, if its line is the one to change."""

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
    """The process was killed, or crashed."""


class TimeCell(NamedTuple):
    """Time of the issues with one key (a fingerprint, a cause) in one of several equal spans of wall time."""

    key: str
    cell: int
    """Which span, from 0."""
    issues: int
    """Number of issues that began in the span."""
    total_ns: int
    """Time of issues in the span."""


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
