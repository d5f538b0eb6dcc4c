"""What is new in one store: stalls as they are stored, go on, or turn out to have killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from loopcanary.model import Session, Stall, StallState
from loopcanary.model.search import Remark, StallQuery

_AT_ONCE = 500
"""Stalls read at one look; the rest at the next."""
_OLD_NS = 3_600 * 1_000_000_000
"""What was over so long before we began is history: a store that was imported, a program of last week."""
_OPEN_MAX = 1_000
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
        self._open: dict[str, int] = {}
        """Stalls that went on, or are stored so, and for how many looks they have been neither."""
        self._sessions: dict[str, Session] = {}
        self.is_running = False
        """Whether a watched process of this store ran at the last look."""

    def take(self) -> list[Stall]:
        """Stalls that are new, or in another state, since the last call. Raises what the store does."""
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
        recent = [stall for stall in found if self._is_recent(stall)]
        if not recent:
            return []
        ignored = {print_ for print_, remark in self._store.remarks().items() if remark.ignored}
        return [stall for stall in recent if stall.fingerprint not in ignored]

    def session_of(self, stall: Stall) -> Session | None:
        """Facts of the process that stalled, where they are known. Raises what the store does."""
        if stall.session not in self._sessions:
            found = self._store.sessions(StallQuery(session=stall.session), 1)
            if not found:
                return None
            self._sessions[stall.session] = found[0]
        return self._sessions[stall.session]

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

    def _is_recent(self, stall: Stall) -> bool:
        return stall.began_wall_ns + stall.duration_ns >= self._since_wall_ns - _OLD_NS
