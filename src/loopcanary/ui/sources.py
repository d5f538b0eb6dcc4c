"""What pages read from: one store, or many as one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from heapq import merge
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, Protocol, cast

from loopcanary.late_dataclass import dataclass
from loopcanary.model import IssueKind
from loopcanary.model.search import GroupSums, IssueGroup, IssueQuery, Remark, Totals
from loopcanary.protocols.stores import IssueStore


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


class OneReader(IssueStore, Protocol):
    """What one folder answers."""

    def state(self) -> Hashable:
        """Another one whenever an answer may have changed; cheap to ask for."""


class Upkeep(Protocol):
    """What pages want of a store beside answers."""

    def delete(self, query: IssueQuery) -> int:
        """Deletes the issues that the query finds, for good; their number."""

    def set_aside(self) -> Sequence[AsideLike]:
        """Damaged databases that were set aside, newest first. Raises nothing."""


class OneStore(Protocol):
    """A store that is one folder."""

    @property
    def folder(self) -> Path:
        """Where it is."""

    @property
    def notices(self) -> list[str]:
        """Lines for people about what was out of the ordinary; the reader takes them out."""

    @property
    def reader(self) -> OneReader:
        """Its answers."""

    @property
    def maintenance(self) -> Upkeep:
        """Deletes."""

    def remark(self, fingerprint: str, remark: Remark) -> None:
        """Puts this in the place of what was said of the bug before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """What becomes of a store that cannot be read where there are others."""

    errors: tuple[type[Exception], ...]
    """What a store may raise."""
    tell: Callable[[int, Exception], object]
    """Which store it was, by its index, and what it raised. Any thread."""


def as_one(stores: Sequence[IssueStore], failures: Failures | None = None) -> IssueStore:
    """The only store, or all of them together: a bug with the same fingerprint in two of them is one bug.

    Args:
        stores: At least one.
        failures: For stores that fail: the others' answers are given. None: what one raises is raised.
    """
    if len(stores) == 1:
        return stores[0]
    return cast("IssueStore", _ManyStores(stores, failures or Failures(errors=(), tell=lambda *_: None)))


def change_each(
    stores: Sequence[OneStore], change: Callable[[OneStore], object], errors: tuple[type[Exception], ...]
) -> None:
    """Changes all of them that can be written; then raises what another one raised."""
    raised: list[Exception] = []
    for store in stores:
        try:
            change(store)
        except errors as error:
            raised.append(error)
    if raised:
        raise raised[0]


class _ManyStores:
    def __init__(self, stores: Sequence[IssueStore], failures: Failures) -> None:
        self._stores = tuple(stores)
        self._failures = failures

    def __getattr__(self, name: str) -> Any:
        """The question `name` to each store, with the answers put together."""
        if name not in _MERGES:
            raise AttributeError(name)
        return partial(self._merged, name)

    def totals(self, query: IssueQuery) -> Totals:
        firsts = [part.first_wall_ns for part in self._each("totals", query)]
        first_wall_ns = min((first for first in firsts if first is not None), default=None)
        return replace(summed(self.group_sums(query)), first_wall_ns=first_wall_ns)

    def groups(
        self, query: IssueQuery, limit: int = 0, fingerprints: Sequence[str] | None = None
    ) -> Sequence[IssueGroup]:
        """Groups by total time over all of them."""
        if limit and fingerprints is None:
            # In full only those that are wanted: each takes several questions and an issue to be read.
            fingerprints = [one.fingerprint for one in self.group_sums(query)[:limit]]
        found: dict[str, list[IssueGroup]] = defaultdict(list)
        for group in chain.from_iterable(self._each("groups", query, 0, fingerprints)):
            found[group.fingerprint].append(group)
        groups = [self._one_group(parts, query) for parts in found.values()]
        return sorted(groups, key=lambda group: (-group.total_ns, group.fingerprint))[: limit or None]

    def _one_group(self, parts: Sequence[IssueGroup], query: IssueQuery) -> IssueGroup:
        if len(parts) == 1:
            return parts[0]
        longest = max(parts, key=lambda group: group.max_ns)
        latest = max(parts, key=lambda group: group.last_wall_ns)
        durations = sorted(mark.duration_ns for mark in self.marks(query, [longest.fingerprint]))
        return replace(
            max(parts, key=lambda group: group.total_ns) if longest.kind == IssueKind.STALL else longest,
            count=sum(group.count for group in parts),
            total_ns=sum(group.total_ns for group in parts),
            p50_ns=durations[(len(durations) - 1) // 2] if durations else latest.p50_ns,
            max_ns=longest.max_ns,
            first_wall_ns=min(group.first_wall_ns for group in parts),
            last_wall_ns=latest.last_wall_ns,
            worst_id=longest.worst_id,
        )

    def _merged(self, name: str, query: object = None, *args: Any, **named: Any) -> Any:
        asked = () if query is None else (query, *args)
        limit = named.get("limit", args[0] if args and isinstance(args[0], int) else 0)
        return _MERGES[name](self._each(name, *asked, **named), limit)

    def _each(self, name: str, *args: Any, **named: Any) -> list[Any]:
        """What each store answers. Those that fail are left out; where all do, what the first one raised."""
        found: list[Any] = []
        raised: list[Exception] = []
        for index, store in enumerate(self._stores):
            try:
                found.append(getattr(store, name)(*args, **named))
            except self._failures.errors as error:
                self._failures.tell(index, error)
                raised.append(error)
        if raised and not found:
            raise raised[0]
        return found


def _all(parts: Iterable[Iterable[Any]], limit: int) -> list[Any]:
    del limit
    return list(chain.from_iterable(parts))


def _newest(when: str) -> Callable[[Iterable[Any], int], list[Any]]:
    def merged(parts: Iterable[Any], limit: int) -> list[Any]:
        found = merge(*parts, key=lambda one: getattr(one, when), reverse=True)
        return list(islice(found, limit or None))

    return merged


def _in_order(parts: Iterable[Iterator[Any]], limit: int) -> Iterator[Any]:
    """As `each` gives them; what is in several stores is taken from the first."""
    del limit
    found = merge(*parts, key=lambda one: (one.session, one.thread, one.loop, one.began_wall_ns, one.id))
    return (next(same) for _, same in groupby(found, key=lambda one: one.id))


def _first(parts: Iterable[Any], limit: int) -> Any:
    del limit
    return next((one for one in parts if one is not None), None)


def _names(parts: Iterable[Iterable[str]], limit: int) -> list[str]:
    return sorted(set(_all(parts, limit)))


def _first_said(parts: Sequence[dict[str, Remark]], limit: int) -> dict[str, Remark]:
    """Of a bug, what the first store that says something says."""
    del limit
    return {name: remark for remarks in reversed(parts) for name, remark in remarks.items()}


def _joined(parts: Iterable[Sequence[GroupSums]], limit: int) -> list[GroupSums]:
    found: dict[str, GroupSums] = {}
    for one in _all(parts, limit):
        known = found.get(one.fingerprint, GroupSums(one.fingerprint, 0, 0, one.end_wall_ns))
        found[one.fingerprint] = GroupSums(
            one.fingerprint,
            known.issues + one.issues,
            known.total_ns + one.total_ns,
            max(known.end_wall_ns, one.end_wall_ns),
        )
    return sorted(found.values(), key=lambda one: (-one.total_ns, one.fingerprint))


_MERGES: dict[str, Callable[[Any, int], Any]] = {
    "group_sums": _joined,
    "issues": _newest("began_wall_ns"),
    "issue": _first,
    "each": _in_order,
    "like": _names,
    "marks": _all,
    "times": _all,
    "time_cells": _all,
    "scenes": _names,
    "sessions": _newest("started_wall_ns"),
    "session_marks": _newest("started_wall_ns"),
    "remarks": _first_said,
}
"""How answers of several stores become one."""


def summed(groups: Sequence[GroupSums]) -> Totals:
    """The sums of all these groups, no two of which are the same."""
    return Totals(
        issues=sum(group.issues for group in groups),
        groups=len(groups),
        total_ns=sum(group.total_ns for group in groups),
        end_wall_ns=max((group.end_wall_ns for group in groups), default=None),
    )
