"""What a database shows in place of stored rows: what runs now, and nothing for what cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.store.sqlite import schema

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence
    from typing import Any

    from loopcanary.store.sqlite.database import Database


class Overlay:
    """Laid over the stored tables in each connection of a database. Methods raise StoreError."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sessions: Sequence[dict[str, Any]] = ()
        self._issues: Sequence[tuple[dict[str, Any], str]] = ()
        self._hidden: frozenset[str] = frozenset()

    def show(self, sessions: Sequence[dict[str, Any]], issues: Sequence[tuple[dict[str, Any], str]]) -> None:
        """These take the place of what was shown before."""
        self._sessions, self._issues = sessions, issues
        self._database.on_connect(self._lay)

    def hide(self, ids: Iterable[str]) -> None:
        """What is stored under these ids, and no others, is not shown."""
        self._hidden = frozenset(ids)
        self._database.on_connect(self._lay)

    def _lay(self, connection: sqlite3.Connection) -> None:
        laid = connection.execute("SELECT 1 FROM temp.sqlite_master WHERE name = 'live_issues'").fetchone()
        statements = [] if laid else list(schema.OVERLAY)
        statements += schema.NO_ISSUES_OVERLAY
        statements += schema.ISSUES_OVERLAY if self._issues or self._hidden else ()
        for statement in statements:
            connection.execute(statement)
        for table in ("live_sessions", "live_issues", "live_payloads", "covered"):
            connection.execute(f"DELETE FROM temp.{table}")  # noqa: S608 - as below
        for session in self._sessions:
            _insert(connection, "live_sessions", session)
        for number, (columns, payload) in enumerate(self._issues, start=1):
            # Negative rows: no stored issue has one.
            _insert(connection, "live_issues", {"row": -number, **columns})
            _insert(connection, "live_payloads", {"row": -number, "payload": payload})
        live = {one["id"] for one in (*self._sessions, *(columns for columns, _ in self._issues))}
        for covered in self._hidden | live:
            _insert(connection, "covered", {"id": covered})


def _insert(connection: sqlite3.Connection, table: str, columns: dict[str, Any]) -> None:
    names = ", ".join(columns)
    marks = ", ".join(f":{name}" for name in columns)
    connection.execute(f"INSERT INTO temp.{table} ({names}) VALUES ({marks})", columns)  # noqa: S608 - names of ours
