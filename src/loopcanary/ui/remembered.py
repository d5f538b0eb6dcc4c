"""A store whose answers are kept until it changes: pages ask the same again and again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TypeVar

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
from loopcanary.report.model import Sums
from loopcanary.ui.sources import Key, StoreLike, summed

_ANSWERS_MAX = 64
_MARKS_MAX = 20_000
"""A longer answer is not kept: it would take megabytes."""
_T = TypeVar("_T")


class Remembered:
    """Sums, groups and the like are kept; stalls and sessions in full are read each time. Thread-safe."""

    def __init__(self, store: StoreLike) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._state: Hashable = None
        self._answers: OrderedDict[Hashable, object] = OrderedDict()

    def _kept(self, key: Hashable, ask: Callable[[], _T]) -> _T:
        """What was answered in the store's present state, or the answer now.

        The state is read first: an answer that comes after a change is kept under the state before it, and
        so is not kept for long.
        """
        state = self._store.state()
        with self._lock:
            if state != self._state:
                self._answers.clear()
                self._state = state
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]  # type: ignore[return-value]
        answer = ask()
        with self._lock:
            if state == self._state and not (isinstance(answer, list) and len(answer) > _MARKS_MAX):
                self._answers[key] = answer
                while len(self._answers) > _ANSWERS_MAX:
                    self._answers.popitem(last=False)
        return answer

    def _cheaper(self, query: StallQuery, fingerprints: Sequence[str] | None) -> StallQuery:
        """The query without its words where all stalls of these groups have them: they are then found by an
        index, and no text is read."""
        if not query.words or fingerprints is None:
            return query
        bare = replace(query, words=())
        with_words = {one.fingerprint: one.stalls for one in self.group_sums(query)}
        without = {one.fingerprint: one.stalls for one in self.group_sums(bare)}
        return bare if all(with_words.get(name) == without.get(name) for name in fingerprints) else query

    def totals(self, query: StallQuery) -> Sums:
        """Sums over the stalls that the query finds: those of its groups."""
        return summed(self.group_sums(query))

    def group_sums(self, query: StallQuery) -> Sequence[GroupSums]:
        """All groups in short."""
        return self._kept(("group_sums", query), lambda: self._store.group_sums(query))

    def groups(
        self, query: StallQuery, limit: int = 0, fingerprints: Sequence[str] | None = None
    ) -> Sequence[StallGroup]:
        """Groups by total time, largest first."""
        if query.words and limit and fingerprints is None:
            # Texts were searched for the sums; now those of the wanted groups are enough.
            fingerprints = [one.fingerprint for one in self.group_sums(query)[:limit]]
        query = self._cheaper(query, fingerprints)
        key = ("groups", query, limit, None if fingerprints is None else tuple(fingerprints))
        return self._kept(key, lambda: self._store.groups(query, limit, fingerprints))

    def issue_totals(self, query: StallQuery) -> Sums:
        """Sums over the issues that are no stalls."""
        return summed(self.issue_group_sums(query))

    def issue_group_sums(self, query: StallQuery) -> Sequence[GroupSums]:
        """All groups of issues that are no stalls in short."""
        return self._kept(("issue_group_sums", query), lambda: self._store.issue_group_sums(query))

    def issue_groups(self, query: StallQuery, limit: int = 0) -> Sequence[IssueGroup]:
        """Groups of issues that are no stalls."""
        return self._kept(("issue_groups", query, limit), lambda: self._store.issue_groups(query, limit))

    def marks(self, query: StallQuery, fingerprints: Sequence[str] | None = None) -> Sequence[StallMark]:
        """Stalls in short."""
        key = ("marks", query, None if fingerprints is None else tuple(fingerprints))
        return self._kept(key, lambda: self._store.marks(query, fingerprints))

    def stall_times(self, query: StallQuery, sessions: Sequence[str] | None = None) -> Sequence[StallTime]:
        """When stalls were, and how long."""
        key = ("stall_times", query, None if sessions is None else tuple(sessions))
        return self._kept(key, lambda: self._store.stall_times(query, sessions))

    def session_marks(self, query: StallQuery) -> Sequence[SessionMark]:
        """All sessions of the query's time, in short."""
        return self._kept(("session_marks", query), lambda: self._store.session_marks(query))

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
        query = self._cheaper(query, keys if key == "fingerprint" else None)
        asked = (
            "time_cells", query, key, begin_wall_ns, step_ns, cells, None if keys is None else tuple(keys)
        )  # fmt: skip
        return self._kept(
            asked,
            lambda: self._store.time_cells(
                query, key, begin_wall_ns=begin_wall_ns, step_ns=step_ns, cells=cells, keys=keys
            ),
        )

    def scenes(self) -> Sequence[str]:
        """Names of all scenes."""
        return self._kept("scenes", self._store.scenes)

    def remarks(self) -> dict[str, Remark]:
        """What people said of bugs."""
        return self._kept("remarks", self._store.remarks)

    def stalls(self, query: StallQuery, limit: int = 0) -> Sequence[Stall]:
        """Stalls, newest first."""
        return self._store.stalls(query, limit)

    def issues(self, query: StallQuery, limit: int = 0) -> Sequence[LagIssue]:
        """Issues that are no stalls, newest first."""
        return self._store.issues(query, limit)

    def stall(self, stall_id: str) -> Stall | None:
        """The stall with this id."""
        return self._store.stall(stall_id)

    def issue(self, issue_id: str) -> LagIssue | None:
        """The issue that is no stall with this id."""
        return self._store.issue(issue_id)

    def sessions(self, query: StallQuery, limit: int = 0) -> Sequence[Session]:
        """Sessions, newest first."""
        return self._store.sessions(query, limit)

    def remark(self, fingerprint: str, remark: Remark) -> None:
        """Says something of a bug."""
        self._store.remark(fingerprint, remark)

    def delete(self, query: StallQuery) -> int:
        """Deletes stalls for good."""
        return self._store.delete(query)
