"""A store whose short answers are kept until it changes: pages ask the same again and again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from loopcanary.model.search import IssueGroup, IssueQuery, TimeCell, Totals
from loopcanary.protocols.stores import IssueStore
from loopcanary.ui.sources import OneReader, summed

_KEPT = frozenset(
    {"group_sums", "groups", "marks", "times", "session_marks", "time_cells", "scenes", "remarks"}
)
"""Issues and sessions in full are read each time."""
_ANSWERS_MAX = 64
_LONGEST = 20_000
"""Longer answers are not kept, because they take megabytes."""


def cached(store: OneReader) -> IssueStore:
    """The store, with its short answers kept. Thread-safe."""
    return cast("IssueStore", _Cached(store))


def _hashable(values: Any) -> tuple[Hashable, ...]:
    return tuple(_hashable(one) if isinstance(one, (list, tuple)) else one for one in values)


class _Cached:
    def __init__(self, store: OneReader) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._seen: Hashable = None
        self._answers: OrderedDict[Hashable, object] = OrderedDict()

    def __getattr__(self, name: str) -> Any:
        return partial(self._answer, name) if name in _KEPT else getattr(self._store, name)

    def _answer(self, method: str, *args: Any, **named: Any) -> Any:
        """The answer kept for the store's present state, or a new one.

        It reads the state first: an answer that comes after a change is kept under the state before it, and
        soon dropped.
        """
        key = (method, _hashable(args), _hashable(named.items()))
        state = self._store.state()
        with self._lock:
            if state != self._seen:
                self._answers.clear()
                self._seen = state
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        found = getattr(self._store, method)(*args, **named)
        with self._lock:
            if state == self._seen and not (isinstance(found, list) and len(found) > _LONGEST):
                self._answers[key] = found
                while len(self._answers) > _ANSWERS_MAX:
                    self._answers.popitem(last=False)
        return found

    def totals(self, query: IssueQuery) -> Totals:
        """The sums of the groups, whose answers are kept."""
        return summed(self.group_sums(query))

    def groups(
        self, query: IssueQuery, limit: int = 0, fingerprints: Sequence[str] | None = None
    ) -> Sequence[IssueGroup]:
        """Searches texts once only."""
        if query.words and limit and fingerprints is None:
            # Texts were searched for the sums; now those of the wanted groups are enough.
            fingerprints = [one.fingerprint for one in self.group_sums(query)[:limit]]
        query = self._cheaper(query, fingerprints)
        found: Sequence[IssueGroup] = self._answer("groups", query, limit, fingerprints)
        return found

    def time_cells(self, query: IssueQuery, key: str, **named: Any) -> Sequence[TimeCell]:
        """Searches texts once only."""
        query = self._cheaper(query, named.get("keys") if key == "fingerprint" else None)
        found: Sequence[TimeCell] = self._answer("time_cells", query, key, **named)
        return found

    def _cheaper(self, query: IssueQuery, fingerprints: Sequence[str] | None) -> IssueQuery:
        """The query without its words if all issues of these groups have them: an index finds them then, and
        no text is read."""
        if not query.words or fingerprints is None:
            return query
        bare = replace(query, words=())
        with_words = {one.fingerprint: one.issues for one in self.group_sums(query)}
        without = {one.fingerprint: one.issues for one in self.group_sums(bare)}
        return bare if all(with_words.get(name) == without.get(name) for name in fingerprints) else query
