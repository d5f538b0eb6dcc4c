"""Protocols of the store: writing issues and sessions, and queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

from loopcanary.model import Issue, Session, TraceFigures
from loopcanary.model.search import (
    GroupSums,
    IssueGroup,
    IssueMark,
    IssueQuery,
    IssueTime,
    Remark,
    SessionMark,
    TimeCell,
    Totals,
)


class Sink(Protocol):
    """Keeps issues and sessions; the store implements this protocol. Thread-safe."""

    def put_session(self, session: Session) -> None:
        """Adds the session, or replaces an earlier state."""

    def put_issue(self, issue: Issue) -> None:
        """Adds the issue, or replaces an earlier state (same id)."""

    def put_traces(self, session: str, figures: TraceFigures) -> None:
        """A session's trace figures so far; they replace earlier ones."""

    def rest(self, patience_s: float) -> bool:
        """Before a fork: closes all files, and keeps every thread out until `go_on`. Returns False if this
        takes longer than `patience_s`; then no `go_on` is needed. Raises StoreError and the like if it
        fails."""

    def go_on(self) -> None:
        """The fork is over, in the parent. Called after a `rest` that gave True."""

    def close(self) -> None:
        """Closes files; a later put opens them again."""


class IssueStore(Protocol):
    """The queries of one store, or of several stores together.

    Thread-safe. Raises the store's own errors. A limit of 0: all.
    """

    def totals(self, query: IssueQuery) -> Totals:
        """How many issues and groups the query finds, their time, and when the first began."""

    def group_sums(self, query: IssueQuery) -> Sequence[GroupSums]:
        """All groups in short, by total time, largest first."""

    def groups(
        self, query: IssueQuery, limit: int = 0, fingerprints: Sequence[str] | None = None
    ) -> Sequence[IssueGroup]:
        """Groups by total time, largest first.

        Args:
            query: Which issues.
            limit: The most that are wanted.
            fingerprints: Of these groups only; None: all.
        """

    def issues(self, query: IssueQuery, limit: int = 0) -> Sequence[Issue]:
        """Issues, newest first."""

    def issue(self, issue_id: str) -> Issue | None:
        """The issue with this id."""

    def each(self, query: IssueQuery) -> Iterator[Issue]:
        """Issues in order of session, then thread, then begin. Only a few are in memory at a time."""

    def like(
        self, column: Literal["id", "fingerprint"], prefix: str, query: IssueQuery, limit: int = 10
    ) -> Sequence[str]:
        """Ids or fingerprints that begin so.

        Args:
            column: What is looked for.
            prefix: How it begins; case counts.
            query: Of which issues.
            limit: The most that are wanted.

        Returns:
            Each once, in order.
        """

    def marks(self, query: IssueQuery, fingerprints: Sequence[str] | None = None) -> Sequence[IssueMark]:
        """Issues in short, in no order; `fingerprints`: of these groups only."""

    def times(self, query: IssueQuery, sessions: Sequence[str] | None = None) -> Sequence[IssueTime]:
        """When issues began and how long they were, in no order; `sessions`: of these only."""

    def time_cells(
        self,
        query: IssueQuery,
        key: Literal["fingerprint", "cause"],
        *,
        begin_wall_ns: int,
        step_ns: int,
        cells: int,
        keys: Sequence[str] | None = None,
    ) -> Sequence[TimeCell]:
        """Stalled time by key and span of time. An issue that lasts into later spans has its time in each;
        what lasts beyond the last is left out.

        Args:
            query: Which issues; of these, those that began in the spans.
            key: What makes two of them different.
            begin_wall_ns: Where the first span begins.
            step_ns: How long a span is.
            cells: How many there are.
            keys: These only; None: all.

        Returns:
            In no order. A key and span may occur several times.
        """

    def scenes(self) -> Sequence[str]:
        """Names of all scenes of issues, in order."""

    def sessions(self, query: IssueQuery, limit: int = 0) -> Sequence[Session]:
        """Sessions that ran in the query's time, newest first."""

    def session_marks(self, query: IssueQuery) -> Sequence[SessionMark]:
        """All sessions that ran in the query's time, in short, newest first."""

    def remarks(self) -> dict[str, Remark]:
        """People's notes on bugs, by fingerprint."""
