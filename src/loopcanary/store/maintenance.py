"""What keeps a store small and whole: deleting, sweeping, what dead processes left unfinished."""

# ruff: noqa: S608 - statements are put together from this package's own literals; values are bound

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from loopcanary.model import Session, SessionEnd, Stall, StallState, TraceFigures
from loopcanary.model.search import IssueQuery, of_type
from loopcanary.store import search
from loopcanary.store.records import figures_of
from loopcanary.store.retention import OVER_AND_EMPTY, Retention, give_back_space, sweep, used_bytes
from loopcanary.store.sqlite.files import Aside, set_aside_in

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from loopcanary.store.sqlite.database import Database
    from loopcanary.store.unreadable import Unreadable

_DELETE_BATCH = 1_000


class Maintenance:
    """Thread-safe; every method raises only StoreError."""

    def __init__(self, database: Database, retention: Retention, unreadable: Unreadable) -> None:
        self._database = database
        self._retention = retention
        self._unreadable = unreadable

    def sweep(self) -> int:
        """Removes what retention does not keep; the number of issues removed."""
        return sweep(self._database, self._retention, time.time_ns())

    def shrink(self, most_bytes: int) -> int:
        """Removes the oldest issues until the rest takes no more; the number of issues removed."""
        narrow = Retention(age_ns=1 << 62, stalls=1 << 62, bytes=most_bytes)
        removed = 0
        while self.used_bytes() > most_bytes and self._holds_something():
            removed += sweep(self._database, narrow, time.time_ns())
        return removed

    def _holds_something(self) -> bool:
        statement = "SELECT EXISTS (SELECT 1 FROM main.issues)"
        return bool(self._database.row(statement)[0])

    def delete(self, query: IssueQuery) -> int:
        """Deletes the issues that the query finds, and gives their number.

        A query by time alone also deletes the ended sessions of that time that have no issues left.
        """
        deleted = self._delete_rows(*search.condition(query))
        if query == IssueQuery(until_wall_ns=query.until_wall_ns):
            self._delete_sessions(query.until_wall_ns)
        return deleted

    def delete_as_seen(self, seen: Iterable[tuple[str, str]]) -> int:
        """Deletes those of these issues, by id, that still are in the state in which they were seen; the
        number deleted."""
        rows = [(search.storable(issue_id), state) for issue_id, state in seen]
        statement = "DELETE FROM main.issues WHERE id = ? AND state = ?"
        deleted = 0
        for begin in range(0, len(rows), _DELETE_BATCH):
            some = rows[begin : begin + _DELETE_BATCH]
            deleted += self._database.write(partial(_delete_each, statement, some))
        if deleted:
            self._database.outside_transaction(give_back_space)
        return deleted

    def delete_records(self, ids: Iterable[str]) -> int:
        """Deletes the issues and runs with these ids; the number deleted."""
        rows = [(search.storable(one),) for one in ids]
        deleted = 0
        for table in ("issues", "sessions"):
            deleted += self._database.write(
                partial(_delete_each, f"DELETE FROM main.{table} WHERE id = ?", rows)
            )
        return deleted

    def delete_all_but_newest(self, keep: int) -> int:
        """Deletes all stalls except the newest `keep`; the number deleted."""
        newest = (
            "SELECT row FROM main.issues WHERE kind = 'stall' ORDER BY began_wall_ns DESC, row DESC LIMIT ?"
        )
        return self._delete_rows(f"WHERE kind = 'stall' AND row NOT IN ({newest})", [max(keep, 0)])

    def _delete_rows(self, clause: str, values: list[Any]) -> int:
        chosen = f"SELECT row FROM main.issues {clause} LIMIT {_DELETE_BATCH}"
        statement = f"DELETE FROM main.issues WHERE row IN ({chosen})"
        deleted = 0
        while True:
            batch = self._database.write(lambda connection: connection.execute(statement, values).rowcount)
            deleted += batch
            if batch < _DELETE_BATCH:
                break
        if deleted:
            self._database.outside_transaction(give_back_space)
        return deleted

    def _delete_sessions(self, until_wall_ns: int | None) -> None:
        statement = f"DELETE FROM main.sessions WHERE started_wall_ns < ? AND {OVER_AND_EMPTY}"
        until = search.bounded(1 << 63 if until_wall_ns is None else until_wall_ns)
        self._database.write(lambda connection: connection.execute(statement, [until]))

    def running_sessions(self, host: str) -> list[Session]:
        """Stored sessions of this host of which no end is known."""
        statement = "SELECT id, payload, NULL FROM main.sessions WHERE end = ? AND host = ?"
        values = [SessionEnd.RUNNING.value, search.storable(host)]
        return self._unreadable.sessions(self._database.rows(statement, values))

    def ongoing_stalls(self, session: str) -> list[Stall]:
        """Stalls of a session that were stored while they lasted and never completed."""
        statement = """SELECT row, payload FROM main.payloads WHERE row IN
                       (SELECT row FROM main.issues WHERE session = ? AND state = ? AND kind = 'stall')"""
        values = [search.storable(session), StallState.ONGOING.value]
        return of_type(Stall, self._unreadable.issues(self._database.rows(statement, values)))

    def traces(self, session: str) -> TraceFigures:
        """The figures that were stored while the session went on."""
        rows = self._database.rows(
            "SELECT payload FROM main.traces WHERE session = ?", [search.storable(session)]
        )
        return figures_of(rows[0][0]) if rows else TraceFigures()

    def set_aside(self) -> list[Aside]:
        """Damaged databases that any process set aside in the folder, newest first. Raises nothing."""
        return set_aside_in(self._database.folder)

    def unreadable(self) -> list[str]:
        """A line for people about each kind whose issues no list has, as nothing here can read them."""
        return self._database.read(search.unreadable)

    def used_bytes(self) -> int:
        return self._database.read(used_bytes)


def _delete_each(statement: str, rows: Sequence[tuple[str, ...]], connection: sqlite3.Connection) -> int:
    return connection.executemany(statement, rows).rowcount
