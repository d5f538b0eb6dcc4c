"""What is new in one store: stalls as they are stored, go on, or turn out to have killed; other issues as
they are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, Session, Stall, StallState
from loopcanary.model.search import IssueQuery, of_type
from loopcanary.protocols.stores import IssueStore

_AT_ONCE = 500
"""Issues read at one look; the rest at the next."""
_OLD_NS = 3_600 * 1_000_000_000
"""What ended this long before we began is no news: an imported store, a program of last week."""
_OPEN_MAX = 1_000
_IGNORED_MAX = 10_000
_MISSES_MAX = 60
"""Looks until a stall that is over, and not stored, counts as dropped by an interceptor or a limit."""


class NewIssues(Protocol):
    """Says what is new in a store."""

    def row_before(self, wall_ns: int) -> int:
        """The row before the first issue that began then or later."""

    def last_row(self) -> int:
        """The latest stored issue's; 0 without any."""

    def after(self, row: int, limit: int) -> list[tuple[int, Issue | None]]:
        """Stored issues of later rows, in order; None: one that cannot be read."""


class FollowedStore(Protocol):
    """A store of which one can say what is new in it."""

    @property
    def reader(self) -> IssueStore:
        """Its answers."""

    @property
    def arrivals(self) -> NewIssues:
        """Its latest issues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What runs now beside a store."""

    running: tuple[Session, ...] = ()
    ongoing: tuple[Stall, ...] = ()


class Feed:
    """One store, from a time on. One thread."""

    def __init__(self, store: FollowedStore, look: Callable[[], Live], since_wall_ns: int) -> None:
        """`look` takes in what dead processes left, and returns what runs; it raises the store's errors."""
        self._store = store
        self._look = look
        self._since_wall_ns = since_wall_ns
        self._row: int | None = None
        self._open: dict[str, int] = {}
        """Stalls that went on, or are stored so, and for how many looks they have been neither."""
        self._ignored: dict[str, None] = {}
        """Ids of stalls of bugs that people ignore."""
        self._sessions: dict[str, Session] = {}
        self.is_running = False
        """Whether a watched process of this store ran at the last look."""

    def take(self) -> list[Issue]:
        """Issues that are new, stalls also that are in another state, since the last call. Stalls come first:
        others are made of them. Raises what the store does; the next call then has what this one has not."""
        self.is_running = False  # if the store is gone, nothing runs
        live = self._look()
        self.is_running = bool(live.running)
        self._sessions = {session.id: session for session in live.running}
        ongoing = {stall.id: stall for stall in live.ongoing}
        row, read = self._stored()
        stored = of_type(Stall, read)
        others: list[Issue] = [issue for issue in read if not isinstance(issue, Stall)]
        ended = self._ended(ongoing, {stall.id for stall in stored})
        found = [*stored, *ended, *ongoing.values()]
        recent: list[Issue] = [one for one in [*found, *others] if self._is_recent(one)]
        told = self._without_ignored(recent) if recent else []
        # From here on nothing is read: what was found is returned.
        self._row = row
        for stall in (*stored, *ended):
            self._open.pop(stall.id, None)
        for stall in found:
            if stall.state is StallState.ONGOING:
                self._open[stall.id] = 0
        for oldest in list(self._open)[:-_OPEN_MAX]:
            del self._open[oldest]
        return told

    def session_of(self, issue: Issue) -> Session | None:
        """Facts of the process that it was in, where they are known. Raises what the store does."""
        if issue.session not in self._sessions:
            found = self._store.reader.sessions(IssueQuery(session=issue.session), 1)
            if not found:
                return None
            self._sessions[issue.session] = found[0]
        return self._sessions[issue.session]

    def _without_ignored(self, found: list[Issue]) -> list[Issue]:
        ignored = {print_ for print_, remark in self._store.reader.remarks().items() if remark.ignored}
        kept: list[Issue] = []
        for issue in found:
            of_ignored = bool(issue.stalls) and all(one in self._ignored for one in issue.stalls)
            if issue.fingerprint in ignored or of_ignored:
                self._ignored[issue.id] = None
            else:
                kept.append(issue)
        for oldest in list(self._ignored)[:-_IGNORED_MAX]:
            del self._ignored[oldest]
        return kept

    def _stored(self) -> tuple[int, list[Issue]]:
        """The last row that was read, and the issues."""
        row = self._row
        if row is None:
            row = self._store.arrivals.row_before(self._since_wall_ns)
        # The newest may have been deleted: their rows are given out anew.
        row = min(row, self._store.arrivals.last_row())
        read = self._store.arrivals.after(row, _AT_ONCE)
        last = read[-1][0] if read else row
        return last, [issue for _, issue in read if issue is not None]

    def _ended(self, ongoing: Mapping[str, Stall], stored: Collection[str]) -> list[Stall]:
        """Stalls that were open and are not any more: their rows were there before, or are elsewhere.
        `stored`: ids of those that were just read."""
        found: list[Stall] = []
        misses: dict[str, int] = {}
        for stall_id, missed in self._open.items():
            if stall_id in ongoing or stall_id in stored:
                continue
            stall = self._store.reader.issue(stall_id)
            if isinstance(stall, Stall) and stall.state is not StallState.ONGOING:
                found.append(stall)
            else:
                misses[stall_id] = missed + 1
        for stall_id, missed in misses.items():
            if missed > _MISSES_MAX:
                del self._open[stall_id]
            else:
                self._open[stall_id] = missed
        return found

    def _is_recent(self, issue: Issue) -> bool:
        return issue.began_wall_ns + issue.duration_ns >= self._since_wall_ns - _OLD_NS
