"""Questions to a store, answered from its tables."""

# ruff: noqa: S608 - statements are put together from this package's own literals; values are bound

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

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
from loopcanary.store import records, search

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Hashable, Iterator, Sequence

    from loopcanary.model import Issue, Session
    from loopcanary.store.sqlite.database import Database
    from loopcanary.store.unreadable import Unreadable

_READ_BATCH = 32
_PAYLOAD = "SELECT payload FROM payloads WHERE row = ?"


class Reader:
    """The answers of one database (protocols.stores.IssueStore), without what cannot be read. Raises only
    StoreError."""

    def __init__(self, database: Database, unreadable: Unreadable) -> None:
        self._database = database
        self._unreadable = unreadable

    def state(self) -> Hashable:
        """Another one whenever an answer may have changed; cheap to ask for."""
        return self._database.state()

    def totals(self, query: IssueQuery) -> Totals:
        clause, values = search.summed_condition(query)
        statement = f"""SELECT count(*), count(DISTINCT fingerprint), CAST(total(duration_ns) AS INTEGER),
                               min(began_wall_ns), CAST(max(began_wall_ns + duration_ns) AS INTEGER)
                        FROM issues {clause}"""
        issues, groups, total_ns, first, end = self._database.row(statement, values)
        return Totals(issues=issues, groups=groups, total_ns=total_ns, first_wall_ns=first, end_wall_ns=end)

    def group_sums(self, query: IssueQuery) -> list[GroupSums]:
        clause, values = search.summed_condition(query)
        # The sign keeps the index of groups out where texts are read: it would lead to each row by itself.
        key = "+fingerprint" if query.words else "fingerprint"
        statement = f"""SELECT fingerprint, count(*), CAST(total(duration_ns) AS INTEGER),
                               CAST(max(began_wall_ns + duration_ns) AS INTEGER)
                        FROM issues {clause} GROUP BY {key} ORDER BY max(cause = 'crash') DESC, 3 DESC, 1"""
        return [GroupSums._make(row) for row in self._database.rows(statement, values)]

    def groups(
        self, query: IssueQuery, limit: int = 0, fingerprints: Sequence[str] | None = None
    ) -> list[IssueGroup]:
        from loopcanary.store import grouping

        while True:
            try:
                return self._database.read(
                    lambda connection: grouping.groups(connection, query, limit, fingerprints)
                )
            except records.UnreadableError as error:
                if not self._unreadable.hide([error.row]):
                    raise

    def issues(self, query: IssueQuery, limit: int = 0) -> list[Issue]:
        clause, values = search.readable_condition(query)
        statement = f"SELECT row FROM issues {clause} ORDER BY began_wall_ns DESC, row DESC LIMIT ?"

        def payloads(connection: sqlite3.Connection) -> list[tuple[int, str]]:
            rows = connection.execute(statement, [*values, limit or -1]).fetchall()
            # Not a join: over the overlay's view it would read every payload there is.
            return [(row[0], *(connection.execute(_PAYLOAD, row).fetchone() or ("",))) for row in rows]

        found: list[Issue] = []
        known = -1
        while known < self._unreadable.count:
            known = self._unreadable.count
            found = self._unreadable.issues(self._database.read(payloads))
        return found

    def issue(self, issue_id: str) -> Issue | None:
        statement = "SELECT row, payload FROM payloads WHERE row = (SELECT row FROM issues WHERE id = ?)"
        rows = self._database.rows(statement, [search.storable(issue_id)])
        return next(iter(self._unreadable.issues(rows)), None)

    def each(self, query: IssueQuery) -> Iterator[Issue]:
        clause, values = search.readable_condition(query)
        statement = f"SELECT row FROM issues {clause} ORDER BY session, thread, loop, began_wall_ns, id"
        rows = self._database.rows(statement, values)

        def payloads(some: list[tuple[int]], connection: sqlite3.Connection) -> list[tuple[int, str]]:
            found = [(row[0], connection.execute(_PAYLOAD, row).fetchone()) for row in some]
            # Others were deleted meanwhile.
            return [(row, payload[0]) for row, payload in found if payload is not None]

        for begin in range(0, len(rows), _READ_BATCH):
            read = self._database.read(partial(payloads, rows[begin : begin + _READ_BATCH]))
            yield from self._unreadable.issues(read)

    def marks(self, query: IssueQuery, fingerprints: Sequence[str] | None = None) -> list[IssueMark]:
        return self._database.read(lambda connection: search.marks(connection, query, fingerprints))

    def times(self, query: IssueQuery, sessions: Sequence[str] | None = None) -> list[IssueTime]:
        from loopcanary.store import grouping

        return self._database.read(lambda connection: grouping.issue_times(connection, query, sessions))

    def time_cells(
        self,
        query: IssueQuery,
        key: Literal["fingerprint", "cause"],
        *,
        begin_wall_ns: int,
        step_ns: int,
        cells: int,
        keys: Sequence[str] | None = None,
    ) -> list[TimeCell]:
        from loopcanary.store import grouping

        return self._database.read(
            lambda connection: grouping.time_cells(
                connection,
                query,
                key,
                begin_wall_ns=begin_wall_ns,
                step_ns=step_ns,
                cells=cells,
                keys=keys,
            )
        )

    def scenes(self) -> list[str]:
        statement = "SELECT DISTINCT scene FROM issues WHERE scene <> '' ORDER BY 1"
        return [scene for (scene,) in self._database.rows(statement)]

    def remarks(self) -> dict[str, Remark]:
        return self._database.read(records.read_remarks)

    def sessions(self, query: IssueQuery, limit: int = 0) -> list[Session]:
        clause, values = search.session_condition(query)
        statement = f"""SELECT id, payload, (SELECT traces.payload FROM traces WHERE session = sessions.id)
                        FROM sessions {clause} ORDER BY started_wall_ns DESC, id LIMIT ?"""
        values.append(limit or -1)
        return self._unreadable.sessions(self._database.rows(statement, values))

    def session_marks(self, query: IssueQuery) -> list[SessionMark]:
        clause, values = search.session_condition(query)
        statement = f"""SELECT id, name, version, started_wall_ns, ended_wall_ns, end IN ('killed', 'crashed')
                        FROM sessions {clause} ORDER BY started_wall_ns DESC, id"""
        return [
            SessionMark._make([*mark, bool(killed)])
            for *mark, killed in self._database.rows(statement, values)
        ]

    def like(
        self, column: Literal["id", "fingerprint"], prefix: str, query: IssueQuery, limit: int = 10
    ) -> list[str]:
        clause, values = search.condition(query)
        clause = search.narrowed(clause, f"{column} >= ? AND {column} < ?")
        statement = f"SELECT DISTINCT {column} FROM issues {clause} ORDER BY 1 LIMIT ?"
        return [
            name for (name,) in self._database.rows(statement, [*values, *search.prefix_range(prefix), limit])
        ]
