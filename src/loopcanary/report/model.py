"""A report before it has a form: what was asked for and what the store answered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from loopcanary.model.search import StallGroup, StallQuery

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loopcanary.model import Session, Stall


class Sums(Protocol):
    """Sums over all that a query finds, however little of it is shown."""

    @property
    def stalls(self) -> int:
        """Number of stalls."""

    @property
    def groups(self) -> int:
        """Number of different fingerprints."""

    @property
    def total_ns(self) -> int:
        """Their time."""


class StallSource(Protocol):
    """Where a report's contents come from; `store.Store` is one."""

    def totals(self, query: StallQuery) -> Sums:
        """Sums over the stalls that the query finds."""

    def groups(self, query: StallQuery, limit: int = 0) -> Sequence[StallGroup]:
        """Groups by total time, largest first; limit 0: all."""

    def stalls(self, query: StallQuery, limit: int = 0) -> Sequence[Stall]:
        """Stalls, newest first; limit 0: all."""

    def stall(self, stall_id: str) -> Stall | None:
        """The stall with this id."""

    def sessions(self, query: StallQuery, limit: int = 0) -> Sequence[Session]:
        """Sessions of the query's time, newest first; limit 0: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Groups first, then stalls; both may be cut, `sums` tells of all."""

    generated_wall_ns: int
    sums: Sums
    sessions: Sequence[Session]
    groups: Sequence[StallGroup]
    worst: Mapping[str, Stall]
    """The longest stall of each group shown, by fingerprint."""
    stalls: Sequence[Stall]

    @property
    def is_empty(self) -> bool:
        """Nothing was found."""
        return self.sums.stalls == 0


def build(
    source: StallSource, query: StallQuery, *, limit: int, now_wall_ns: int, with_worst: bool = True
) -> Report:
    """The report of what the query finds: at most `limit` groups, stalls and sessions; 0: all.

    `with_worst`: also the longest stall of each group, in full.
    """
    groups = source.groups(query, limit)
    worst = [source.stall(group.worst_id) for group in groups] if with_worst else []
    return Report(
        generated_wall_ns=now_wall_ns,
        sums=source.totals(query),
        sessions=source.sessions(query, limit),
        groups=groups,
        worst={stall.fingerprint: stall for stall in worst if stall is not None},
        stalls=source.stalls(query, limit),
    )


def of_group(source: StallSource, fingerprint: str, *, limit: int, now_wall_ns: int) -> Report:
    """The report of one bug, with the sessions of the stalls shown."""
    report = build(source, StallQuery(fingerprint=fingerprint), limit=limit, now_wall_ns=now_wall_ns)
    return replace(report, sessions=_sessions_of(source, report.stalls))


def of_stall(source: StallSource, stall: Stall, *, now_wall_ns: int) -> Report:
    """The report of one stall, with its bug and its session."""
    report = build(source, StallQuery(fingerprint=stall.fingerprint), limit=1, now_wall_ns=now_wall_ns)
    return replace(report, stalls=[stall], sessions=_sessions_of(source, [stall]))


def _sessions_of(source: StallSource, stalls: Sequence[Stall]) -> list[Session]:
    ids = dict.fromkeys(stall.session for stall in stalls)
    found = [source.sessions(StallQuery(session=session), 2) for session in ids]
    return [session for sessions in found for session in sessions if session.id in ids]
