"""What one asks a store for, and the groups it answers with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.stall import Cause, Culprit

if TYPE_CHECKING:
    from loopcanary.model.issues.issue import LagIssue


@dataclass(frozen=True, slots=True, kw_only=True)
class StallQuery:
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
    fingerprint: str | None = None
    scene: str | None = None
    """Just this scene; empty: none was known."""
    in_app: bool | None = None
    """Whether the culprit is the program's own code. Stalls of a store that was written before this was kept
    are neither."""
    kind: IssueKind | None = None
    """Only this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StallGroup:
    """All stalls with one fingerprint: one bug. Title, cause and culprit are its latest stall's."""

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
    """The longest stall of the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueGroup:
    """All issues that are no stalls with one fingerprint."""

    fingerprint: str
    count: int
    total_ns: int
    p50_ns: int
    first_wall_ns: int
    last_wall_ns: int
    worst: LagIssue
    """The longest one; what it says holds for the group."""


class GroupSums(NamedTuple):
    """A group in short."""

    fingerprint: str
    stalls: int
    """Their number; of issues that are no stalls, theirs."""
    total_ns: int


StallTime = tuple[str, str, int, int]
"""Fingerprint, session, began_wall_ns and duration_ns of a stall: what comparisons are made of. Plain: to
make named ones of 100,000 takes as long as to read them."""


class StallMark(NamedTuple):
    """A stall in short: what rates, trends and comparisons are made of."""

    fingerprint: str
    session: str
    thread: str
    """Empty, as `loop`, in stalls of a store that was written before these were kept."""
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
    """What stalls of one key (a fingerprint, a cause) took in one of several equal spans of wall time."""

    key: str
    cell: int
    """Which span, from 0."""
    stalls: int
    total_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """What a person said of a bug."""

    ignored: bool = False
    """It is known, and lists leave it out."""
    note: str = ""
