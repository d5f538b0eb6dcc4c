"""What is new in one store: stalls as they are stored, go on, or turn out to have killed; other issues as
they are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from loopcanary.model import Issue, LagIssue, Session, Stall, StallState
from loopcanary.model.search import Remark, StallQuery

_AT_ONCE = 500
"""Stalls, and other issues, read at one look; the rest at the next."""
_OLD_NS = 3_600 * 1_000_000_000
"""What was over so long before we began is history: a store that was imported, a program of last week."""
_OPEN_MAX = 1_000
_IGNORED_MAX = 10_000
_MISSES_MAX = 60
"""A stall that is over and not stored by then was dropped by an interceptor, or by a limit."""


class StoreLike(Protocol):
    """What is asked of a store. Raises its own errors."""

    def row_before(self, wall_ns: int) -> int:
        """The row before the first stall that began then or later."""

    def last_row(self) -> int:
        """The latest stored stall's; 0 without any."""

    def stalls_after(self, row: int, limit: int) -> list[tuple[int, Stall]]:
        """Stored stalls of later rows, in order."""

    def issue_row_before(self, wall_ns: int) -> int:
        """As `row_before`, of issues that are no stalls."""

    def last_issue_row(self) -> int:
        """As `last_row`, of issues that are no stalls."""

    def issues_after(self, row: int, limit: int) -> list[tuple[int, LagIssue]]:
        """Issues that are no stalls of later rows, in order."""

    def stall(self, stall_id: str) -> Stall | None:
        """By its id."""

    def sessions(self, query: StallQuery, limit: int = 0) -> list[Session]:
        """Newest first."""

    def remarks(self) -> Mapping[str, Remark]:
        """By fingerprint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What runs now beside a store."""

    running: tuple[Session, ...] = ()
    ongoing: tuple[Stall, ...] = ()


class Feed:
    """One store, from a time on. One thread."""

    def __init__(self, store: StoreLike, look: Callable[[], Live], since_wall_ns: int) -> None:
        """`look` takes in what dead processes left, and says what runs; it raises what the store does."""
        self._store = store
        self._look = look
        self._since_wall_ns = since_wall_ns
        self._row: int | None = None
        self._issue_row: int | None = None
        self._open: dict[str, int] = {}
        """Stalls that went on, or are stored so, and for how many looks they have been neither."""
        self._ignored: dict[str, None] = {}
        """Ids of stalls of bugs that people ignore."""
        self._sessions: dict[str, Session] = {}
        self.is_running = False
        """Whether a watched process of this store ran at the last look."""

    def take(self) -> list[Issue]:
        """Issues that are new, stalls also that are in another state, since the last call. Stalls come first:
        others are made of them. Raises what the store does."""
        self.is_running = False  # where the store is gone, nobody runs
        live = self._look()
        self.is_running = bool(live.running)
        self._sessions = {session.id: session for session in live.running}
        ongoing = {stall.id: stall for stall in live.ongoing}
        found = [*self._stored(), *self._ended(ongoing), *ongoing.values()]
        for stall in found:
            if stall.state is StallState.ONGOING:
                self._open[stall.id] = 0
        for oldest in list(self._open)[:-_OPEN_MAX]:
            del self._open[oldest]
        recent: list[Issue] = [one for one in (*found, *self._others()) if self._is_recent(one)]
        return self._without_ignored(recent) if recent else []

    def session_of(self, issue: Issue) -> Session | None:
        """Facts of the process that it was in, where they are known. Raises what the store does."""
        if issue.session not in self._sessions:
            found = self._store.sessions(StallQuery(session=issue.session), 1)
            if not found:
                return None
            self._sessions[issue.session] = found[0]
        return self._sessions[issue.session]

    def _without_ignored(self, found: list[Issue]) -> list[Issue]:
        ignored = {print_ for print_, remark in self._store.remarks().items() if remark.ignored}
        kept: list[Issue] = []
        for issue in found:
            if isinstance(issue, Stall):
                is_ignored = issue.fingerprint in ignored
                if is_ignored:
                    self._ignored[issue.id] = None
            else:
                is_ignored = issue.fingerprint in ignored or (
                    bool(issue.stalls) and all(one in self._ignored for one in issue.stalls)
                )
            if not is_ignored:
                kept.append(issue)
        for oldest in list(self._ignored)[:-_IGNORED_MAX]:
            del self._ignored[oldest]
        return kept

    def _others(self) -> Iterator[LagIssue]:
        if self._issue_row is None:
            self._issue_row = self._store.issue_row_before(self._since_wall_ns)
        self._issue_row = min(self._issue_row, self._store.last_issue_row())
        for row, issue in self._store.issues_after(self._issue_row, _AT_ONCE):
            self._issue_row = row
            yield issue

    def _stored(self) -> Iterator[Stall]:
        if self._row is None:
            self._row = self._store.row_before(self._since_wall_ns)
        # The newest may have been deleted: their rows are given out anew.
        self._row = min(self._row, self._store.last_row())
        found = self._store.stalls_after(self._row, _AT_ONCE)
        for row, stall in found:
            self._row = row
            self._open.pop(stall.id, None)
            yield stall

    def _ended(self, ongoing: Mapping[str, Stall]) -> Iterator[Stall]:
        """Stalls that were open and are not any more: their rows were there before, or are elsewhere."""
        for stall_id in [one for one in self._open if one not in ongoing]:
            stall = self._store.stall(stall_id)
            if stall is not None and stall.state is not StallState.ONGOING:
                del self._open[stall_id]
                yield stall
            elif (misses := self._open.pop(stall_id)) < _MISSES_MAX:
                self._open[stall_id] = misses + 1

    def _is_recent(self, issue: Issue) -> bool:
        return issue.began_wall_ns + issue.duration_ns >= self._since_wall_ns - _OLD_NS
