"""What runs now, laid over the stored tables of one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.store.sqlite import schema

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence
    from typing import Any


def lay(
    connection: sqlite3.Connection,
    sessions: Iterable[dict[str, Any]],
    issues: Sequence[tuple[dict[str, Any], str]],
) -> None:
    """These take the place of what was laid over before."""
    covered = connection.execute("SELECT 1 FROM temp.sqlite_master WHERE name = 'live_issues'").fetchone()
    statements = [] if covered else list(schema.OVERLAY)
    statements += schema.NO_ISSUES_OVERLAY
    statements += schema.ISSUES_OVERLAY if issues else ()
    for statement in statements:
        connection.execute(statement)
    for table in ("live_sessions", "live_issues", "live_payloads"):
        connection.execute(f"DELETE FROM temp.{table}")  # noqa: S608 - as below
    for session in sessions:
        _insert(connection, "live_sessions", session)
    for number, (columns, payload) in enumerate(issues, start=1):
        # Negative rows: no stored issue has one.
        _insert(connection, "live_issues", {"row": -number, **columns})
        _insert(connection, "live_payloads", {"row": -number, "payload": payload})


def _insert(connection: sqlite3.Connection, table: str, columns: dict[str, Any]) -> None:
    names = ", ".join(columns)
    marks = ", ".join(f":{name}" for name in columns)
    connection.execute(f"INSERT INTO temp.{table} ({names}) VALUES ({marks})", columns)  # noqa: S608 - names of ours
