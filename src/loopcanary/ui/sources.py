"""What pages read from: one store, or many as one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from loopcanary.model import LagIssue, Session, Stall
from loopcanary.model.search import (
    GroupSums,
    IssueGroup,
    Remark,
    SessionMark,
    StallGroup,
    StallMark,
    StallQuery,
    StallTime,
    TimeCell,
)
from loopcanary.report.model import StallSource, Sums

_T = TypeVar("_T")
Key = Literal["fingerprint", "cause"]


class Source(StallSource, Protocol):
    """What a store answers; see `loopcanary.store.Store`."""

    def time_cells(
        self,
        query: StallQuery,
        key: Key,
        *,
        begin_wall_ns: int,
        step_ns: int,
        cells: int,
        keys: Sequence[str] | None = None,
    ) -> Sequence[TimeCell]:
        """Stalls by key and span of time."""

    def groups(
        self, query: StallQuery, limit: int = 0, fingerprints: Sequence[str] | None = None
    ) -> Sequence[StallGroup]:
        """Groups by total time, largest first; limit 0: all. `fingerprints`: of these only."""

    def group_sums(self, query: StallQuery) -> Sequence[GroupSums]:
        """All groups in short, by total time, largest first."""

    def issue_group_sums(self, query: StallQuery) -> Sequence[GroupSums]:
        """All groups of issues that are no stalls in short, by total time, largest first."""

    def issue(self, issue_id: str) -> LagIssue | None:
        """The issue that is no stall with this id."""

    def scenes(self) -> Sequence[str]:
        """Names of all scenes."""

    def remarks(self) -> dict[str, Remark]:
        """What people said of bugs, by fingerprint."""

    def remark(self, fingerprint: str, remark: Remark) -> None:
        """Says something of a bug."""

    def delete(self, query: StallQuery) -> int:
        """Deletes stalls for good; how many there were."""


class AsideLike(Protocol):
    """A damaged database that was set aside."""

    @property
    def name(self) -> str:
        """Of its file."""

    @property
    def bytes(self) -> int:
        """Its size."""

    @property
    def wall_ns(self) -> int:
        """When it was set aside."""


class StoreLike(Source, Protocol):
    """A source that is one folder."""

    @property
    def notices(self) -> list[str]:
        """Lines for people about what was out of the ordinary; whoever tells them takes them out."""

    def set_aside(self) -> Sequence[AsideLike]:
        """Damaged databases that were set aside, newest first. Raises nothing."""

    @property
    def folder(self) -> Path:
        """Where it is."""

    def state(self) -> Hashable:
        """Another one whenever an answer may have changed; cheap to ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllSums:
    """Sums over several stores."""

    stalls: int
    groups: int
    total_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """What becomes of a store that cannot be read where there are others."""

    errors: tuple[type[Exception], ...]
    """What a store may raise."""
    tell: Callable[[int, Exception], object]
    """Which store it was, by its index, and what it raised. Any thread."""


class ManyStores:
    """Several stores as one: a bug that has the same fingerprint in two of them is one bug.

    Where one cannot be read, the others' answers are given.
    """

    def __init__(self, stores: Sequence[Source], failures: Failures | None = None) -> None:
        """`failures`: None where one that fails shall not be left out."""
        self._stores = tuple(stores)
        self._failures = failures or Failures(errors=(), tell=lambda *_: None)

    def totals(self, query: StallQuery) -> Sums:
        """Sums over all of them."""
        return summed(self.group_sums(query))

    def group_sums(self, query: StallQuery) -> Sequence[GroupSums]:
        """Of all of them."""
        return _joined(sums for _, sums in self._each(lambda store: store.group_sums(query)))

    def groups(
        self, query: StallQuery, limit: int = 0, fingerprints: Sequence[str] | None = None
    ) -> Sequence[StallGroup]:
        """Groups by total time over all of them."""
        if limit and fingerprints is None:
            # In full only those that are wanted: each takes several questions and a stall to be read.
            fingerprints = [one.fingerprint for one in self.group_sums(query)[:limit]]
        found: dict[str, list[tuple[Source, StallGroup]]] = defaultdict(list)
        for store, part in self._each(lambda store: store.groups(query, 0, fingerprints)):
            for group in part:
                found[group.fingerprint].append((store, group))
        groups = sorted(
            (_merged(parts, query) for parts in found.values()),
            key=lambda group: (-group.total_ns, group.fingerprint),
        )
        return groups[: limit or None]

    def stalls(self, query: StallQuery, limit: int = 0) -> Sequence[Stall]:
        """Newest first."""
        return self._newest(lambda store: store.stalls(query, limit), lambda one: one.began_wall_ns, limit)

    def issues(self, query: StallQuery, limit: int = 0) -> Sequence[LagIssue]:
        """Newest first."""
        return self._newest(lambda store: store.issues(query, limit), lambda one: one.began_wall_ns, limit)

    def issue_groups(self, query: StallQuery, limit: int = 0) -> Sequence[IssueGroup]:
        """Groups by total time over all of them."""
        found: dict[str, list[IssueGroup]] = defaultdict(list)
        for group in self._all(lambda store: store.issue_groups(query)):
            found[group.fingerprint].append(group)
        groups = sorted(
            (self._merged_issues(parts, query) for parts in found.values()),
            key=lambda group: (-group.total_ns, group.fingerprint),
        )
        return groups[: limit or None]

    def issue_totals(self, query: StallQuery) -> Sums:
        """Sums over all of them."""
        return summed(self.issue_group_sums(query))

    def issue_group_sums(self, query: StallQuery) -> Sequence[GroupSums]:
        """Of all of them."""
        return _joined(sums for _, sums in self._each(lambda store: store.issue_group_sums(query)))

    def sessions(self, query: StallQuery, limit: int = 0) -> Sequence[Session]:
        """Newest first."""
        return self._newest(
            lambda store: store.sessions(query, limit), lambda one: one.started_wall_ns, limit
        )

    def session_marks(self, query: StallQuery) -> Sequence[SessionMark]:
        """Newest first."""
        return self._newest(lambda store: store.session_marks(query), lambda one: one.started_wall_ns, 0)

    def stall(self, stall_id: str) -> Stall | None:
        """The stall with this id, wherever it is."""
        found = self._each(lambda store: store.stall(stall_id))
        return next((stall for _, stall in found if stall is not None), None)

    def issue(self, issue_id: str) -> LagIssue | None:
        """The issue that is no stall with this id, wherever it is."""
        found = self._each(lambda store: store.issue(issue_id))
        return next((issue for _, issue in found if issue is not None), None)

    def marks(self, query: StallQuery, fingerprints: Sequence[str] | None = None) -> Sequence[StallMark]:
        """In no order."""
        return self._all(lambda store: store.marks(query, fingerprints))

    def stall_times(self, query: StallQuery, sessions: Sequence[str] | None = None) -> Sequence[StallTime]:
        """In no order."""
        return self._all(lambda store: store.stall_times(query, sessions))

    def time_cells(
        self,
        query: StallQuery,
        key: Key,
        *,
        begin_wall_ns: int,
        step_ns: int,
        cells: int,
        keys: Sequence[str] | None = None,
    ) -> Sequence[TimeCell]:
        """A key and span may occur several times."""
        return self._all(
            lambda store: store.time_cells(
                query, key, begin_wall_ns=begin_wall_ns, step_ns=step_ns, cells=cells, keys=keys
            )
        )

    def scenes(self) -> Sequence[str]:
        """In order."""
        return sorted(set(self._all(lambda store: store.scenes())))

    def remarks(self) -> dict[str, Remark]:
        """The first store that says something is heard."""
        found = self._each(lambda store: store.remarks())
        return {name: remark for _, remarks in reversed(found) for name, remark in remarks.items()}

    def remark(self, fingerprint: str, remark: Remark) -> None:
        """Says it in all of them that can be written; then raises what another one raised."""
        self._change(lambda store: store.remark(fingerprint, remark))

    def delete(self, query: StallQuery) -> int:
        """Deletes in all of them that can be written; then raises what another one raised."""
        return sum(self._change(lambda store: store.delete(query)))

    def _merged_issues(self, parts: Sequence[IssueGroup], query: StallQuery) -> IssueGroup:
        if len(parts) == 1:
            return parts[0]
        worst = max((part.worst for part in parts), key=lambda issue: issue.duration_ns)
        issues = self.issues(replace(query, fingerprint=worst.fingerprint))
        durations = sorted(issue.duration_ns for issue in issues) or [worst.duration_ns]
        return IssueGroup(
            fingerprint=worst.fingerprint,
            count=sum(part.count for part in parts),
            total_ns=sum(part.total_ns for part in parts),
            p50_ns=durations[(len(durations) - 1) // 2],
            first_wall_ns=min(part.first_wall_ns for part in parts),
            last_wall_ns=max(part.last_wall_ns for part in parts),
            worst=worst,
        )

    def _all(self, ask: Callable[[Source], Iterable[_T]]) -> list[_T]:
        return [one for _, part in self._each(ask) for one in part]

    def _each(self, ask: Callable[[Source], _T]) -> list[tuple[Source, _T]]:
        """What each store answers. Those that fail are left out; where all do, what the first one raised."""
        found: list[tuple[Source, _T]] = []
        raised: list[Exception] = []
        for index, store in enumerate(self._stores):
            try:
                found.append((store, ask(store)))
            except self._failures.errors as error:
                self._failures.tell(index, error)
                raised.append(error)
        if raised and not found:
            raise raised[0]
        return found

    def _change(self, change: Callable[[Source], _T]) -> list[_T]:
        done: list[_T] = []
        raised: list[Exception] = []
        for store in self._stores:
            try:
                done.append(change(store))
            except self._failures.errors as error:
                raised.append(error)
        if raised:
            raise raised[0]
        return done

    def _newest(
        self, ask: Callable[[Source], Iterable[_T]], when: Callable[[_T], int], limit: int
    ) -> list[_T]:
        found: Any = merge(*(part for _, part in self._each(ask)), key=when, reverse=True)
        return list(islice(found, limit or None))


def summed(groups: Sequence[GroupSums]) -> AllSums:
    """The sums of all these groups, no two of which are the same."""
    return AllSums(
        stalls=sum(group.stalls for group in groups),
        groups=len(groups),
        total_ns=sum(group.total_ns for group in groups),
    )


def _joined(parts: Iterable[Sequence[GroupSums]]) -> list[GroupSums]:
    found: dict[str, GroupSums] = {}
    for part in parts:
        for one in part:
            known = found.get(one.fingerprint, GroupSums(one.fingerprint, 0, 0))
            found[one.fingerprint] = GroupSums(
                one.fingerprint, known.stalls + one.stalls, known.total_ns + one.total_ns
            )
    return sorted(found.values(), key=lambda one: (-one.total_ns, one.fingerprint))


def _merged(parts: Sequence[tuple[Source, StallGroup]], query: StallQuery) -> StallGroup:
    groups = [group for _, group in parts]
    if len(groups) == 1:
        return groups[0]
    latest = max(groups, key=lambda group: group.last_wall_ns)
    marks = [mark for store, _ in parts for mark in store.marks(query, [latest.fingerprint])]
    durations = sorted(mark.duration_ns for mark in marks) or [latest.p50_ns]
    return replace(
        latest,
        count=sum(group.count for group in groups),
        total_ns=sum(group.total_ns for group in groups),
        p50_ns=durations[(len(durations) - 1) // 2],
        max_ns=max(group.max_ns for group in groups),
        first_wall_ns=min(group.first_wall_ns for group in groups),
        worst_id=max(groups, key=lambda group: group.max_ns).worst_id,
    )


def as_one(stores: Sequence[Source], failures: Failures | None = None) -> Source:
    """The only store, or all of them together, as far as they do not fail."""
    return stores[0] if len(stores) == 1 else ManyStores(stores, failures)
