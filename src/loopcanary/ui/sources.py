"""The stores that pages read: one, or many as one."""

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
from loopcanary.model import IssueKind, Session
from loopcanary.model.search import GroupSums, IssueGroup, IssueQuery, Remark, Totals
from loopcanary.protocols.stores import IssueStore


def session_named(source: IssueStore, session_id: str) -> Session | None:
    """The session of this id; None: there is none. A query also finds those whose ids begin so."""
    found = source.sessions(IssueQuery(session=session_id), 2)
    return next((session for session in found if session.id == session_id), None)


class AsideLike(Protocol):
    """A damaged database that was set aside."""

    @property
    def name(self) -> str: ...

    @property
    def bytes(self) -> int: ...

    @property
    def wall_ns(self) -> int: ...


class OneReader(IssueStore, Protocol):
    def state(self) -> Hashable:
        """Differs whenever an answer may have changed; cheap to ask for."""


class Upkeep(Protocol):
    def delete(self, query: IssueQuery) -> int:
        """Deletes the issues that the query finds, for good; returns their number."""

    def set_aside(self) -> Sequence[AsideLike]:
        """Damaged databases that were set aside, newest first. Raises nothing."""


class OneStore(Protocol):
    @property
    def folder(self) -> Path: ...

    @property
    def notices(self) -> list[str]:
        """Lines about what was out of the ordinary; the reader takes them out."""

    @property
    def reader(self) -> OneReader: ...

    @property
    def maintenance(self) -> Upkeep: ...

    def remark(self, fingerprint: str, remark: Remark) -> None:
        """Replaces the bug's remark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Leaves out stores that cannot be read, where there are others."""

    errors: tuple[type[Exception], ...]
    tell: Callable[[int, Exception], object]
    """Gets the store's index, and its error. Any thread."""


def as_one(stores: Sequence[IssueStore], failures: Failures | None = None) -> IssueStore:
    """The only store, or all of them together: one fingerprint is one bug.

    With `failures` the others answer for a store that fails; else its error is raised.
    """
    if len(stores) == 1:
        return stores[0]
    return cast("IssueStore", _ManyStores(stores, failures or Failures(errors=(), tell=lambda *_: None)))


def change_each(
    stores: Sequence[OneStore], change: Callable[[OneStore], object], errors: tuple[type[Exception], ...]
) -> None:
    """Changes all stores that can be written; then raises the first error of another one."""
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
        if limit and fingerprints is None:
            # Reads only the wanted groups in full: each takes several questions and an issue.
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
        """The answers of the stores that do not fail; if all fail, raises the first error."""
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


def _all(parts: Iterable[Iterable[Any]], _limit: int) -> list[Any]:
    return list(chain.from_iterable(parts))


def _newest(when: str) -> Callable[[Iterable[Any], int], list[Any]]:
    def merged(parts: Iterable[Any], limit: int) -> list[Any]:
        found = merge(*parts, key=lambda one: getattr(one, when), reverse=True)
        return list(islice(found, limit or None))

    return merged


def _in_order(parts: Iterable[Iterator[Any]], _limit: int) -> Iterator[Any]:
    """In the order of `each`; an issue of several stores comes from the first."""
    found = merge(*parts, key=lambda one: (one.session, one.thread, one.loop, one.began_wall_ns, one.id))
    return (next(same) for _, same in groupby(found, key=lambda one: one.id))


def _first(parts: Iterable[Any], _limit: int) -> Any:
    return next((one for one in parts if one is not None), None)


def _names(parts: Iterable[Iterable[str]], limit: int) -> list[str]:
    return sorted(set(_all(parts, limit)))


def _first_said(parts: Sequence[dict[str, Remark]], _limit: int) -> dict[str, Remark]:
    """Each bug's remark from the first store that has one."""
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
"""Joins the answers of several stores."""


def summed(groups: Sequence[GroupSums]) -> Totals:
    return Totals(
        issues=sum(group.issues for group in groups),
        groups=len(groups),
        total_ns=sum(group.total_ns for group in groups),
        end_wall_ns=max((group.end_wall_ns for group in groups), default=None),
    )
