"""Records of other stores, gathered beside this one and then taken in all at once, or not at all.

They are gathered in a database of their own: programs that write to the store meanwhile wait for its
merging, not for the reading of what may be a large file.
"""

# ruff: noqa: S608 - statements are put together from this package's own literals; values are bound

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, Session
from loopcanary.model.search import Remark
from loopcanary.store import records
from loopcanary.store.errors import StoreError
from loopcanary.store.records import ISSUE, SESSION, bound, excluded
from loopcanary.store.sqlite import schema

# What this store watched itself it knows best; of what was taken in before, only what was not over yet can
# have become more.
_INTO_SESSIONS = f"""
INSERT INTO main.sessions ({SESSION}) {{values}}
ON CONFLICT (id) DO UPDATE SET {excluded(SESSION)}
WHERE sessions.end = '{records.LEFT}'
    AND (excluded.end <> '{records.LEFT}' OR excluded.ended_wall_ns > sessions.ended_wall_ns)
"""
_INTO_ISSUES = f"""
INSERT INTO main.issues ({ISSUE}) {{values}}
ON CONFLICT (id) DO UPDATE SET {excluded(ISSUE)}
WHERE instr({records.STATES}, excluded.state) > instr({records.STATES}, issues.state)
"""

_FRESH = f"""
CREATE TEMP TABLE fresh_issues AS
SELECT theirs.row AS row, theirs.kind = 'stall' AS is_stall, ours.row IS NOT NULL AS known
FROM staged.issues AS theirs LEFT JOIN main.issues AS ours ON ours.id = theirs.id
WHERE ours.row IS NULL OR instr({records.STATES}, theirs.state) > instr({records.STATES}, ours.state)
"""
_FRESH_PAYLOADS = """
INSERT OR REPLACE INTO main.payloads
SELECT ours.row, staged.payloads.payload FROM temp.fresh_issues AS fresh
JOIN staged.issues AS theirs ON theirs.row = fresh.row
JOIN main.issues AS ours ON ours.id = theirs.id
JOIN staged.payloads ON staged.payloads.row = theirs.row
"""
_COUNTED = "SELECT total(is_stall), total(is_stall AND known), total(NOT is_stall) FROM temp.fresh_issues"
_TOO_OLD = """
SELECT count(*) FROM staged.issues WHERE kind = 'stall' AND began_wall_ns < ?
    AND row IN (SELECT row FROM temp.fresh_issues)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenIn:
    """What became of what was gathered."""

    stalls: int
    """Stalls that were not in the store."""
    updated: int
    """Stalls that were in it, and had not come to their end there."""
    stalls_known: int
    sessions: int
    """New, or known better now."""
    issues: int
    """Issues of other kinds that were not in the store."""
    remarks: int
    too_old: int
    """New stalls that the store's retention does not keep for long: they are older than it keeps any."""


class Intake:
    """Gathers records in a file of its own: what an importer is given. One thread.

    Raises:
        StoreError: From every method: no room, or the file fails.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._now_wall_ns = time.time_ns()
        self._connection = sqlite3.connect(path, isolation_level=None)
        # If anything goes wrong, it is thrown away.
        self._connection.execute("PRAGMA journal_mode = OFF")
        self._connection.execute("PRAGMA synchronous = OFF")
        schema.create(self._connection)
        self._connection.execute("BEGIN")

    def add_session(self, session: Session) -> None:
        """Adds a session, or what is new of one that was added before.

        Args:
            session: As its process knew it last.
        """
        statement = _INTO_SESSIONS.format(values=f"VALUES ({bound(SESSION)})")
        with self._sound():
            self._connection.execute(statement, records.session_columns(session))

    def add_issue(self, issue: Issue) -> None:
        """Adds an issue, or a later state of one that was added before.

        Args:
            issue: Of any kind, complete. Its session may be added before or after it.
        """
        statement = _INTO_ISSUES.format(values=f"VALUES ({bound(ISSUE)})") + "RETURNING row"
        columns, payload = records.issue_columns(issue), records.issue_payload(issue)
        with self._sound():
            row = self._connection.execute(statement, columns).fetchone()
            if row is not None:
                self._connection.execute("INSERT OR REPLACE INTO payloads VALUES (?, ?)", [row[0], payload])

    def add_remark(self, fingerprint: str, remark: Remark) -> None:
        """Adds what people said of a bug, unless it has a remark.

        Args:
            fingerprint: Of the bug.
            remark: Its note, and whether it is ignored.
        """
        with self._sound():
            records.add_remark(self._connection, fingerprint, remark, self._now_wall_ns)

    def done(self) -> None:
        with self._sound():
            self._connection.execute("COMMIT")
        self._connection.close()

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _sound(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            room = f"{self.path.parent} has no space for the records to import"
            raise StoreError(f"{room}, or fails: {error}") from error


def merge(connection: sqlite3.Connection, staged: Path, oldest_kept: int) -> TakenIn:
    """Takes in what was gathered, in one transaction: all, or nothing if it raises.

    Args:
        connection: To the store, in no transaction.
        staged: The file of an Intake that is done.
        oldest_kept: Issues that began before this are left out, in wall ns.

    Raises:
        sqlite3.Error: What the database says.
    """
    connection.execute("ATTACH DATABASE ? AS staged", [str(staged)])
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            taken = _merge(connection, oldest_kept)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    finally:
        connection.execute("DETACH DATABASE staged")
    return taken


def _merge(connection: sqlite3.Connection, oldest_kept: int) -> TakenIn:
    def take(statement: str, columns: str, source: str) -> int:
        values = f"SELECT {columns} FROM staged.{source}"
        return connection.execute(statement.format(values=values)).rowcount

    sessions = take(_INTO_SESSIONS, SESSION, "sessions WHERE true")
    connection.execute(_FRESH)
    fresh, updated, others = (int(number) for number in connection.execute(_COUNTED).fetchone())
    old = int(connection.execute(_TOO_OLD, [oldest_kept]).fetchone()[0])
    take(_INTO_ISSUES, ISSUE, "issues WHERE row IN (SELECT row FROM temp.fresh_issues)")
    connection.execute(_FRESH_PAYLOADS)
    connection.execute("DROP TABLE temp.fresh_issues")
    said = connection.execute("INSERT OR IGNORE INTO main.remarks SELECT * FROM staged.remarks").rowcount
    total = connection.execute("SELECT count(*) FROM staged.issues WHERE kind = 'stall'").fetchone()[0]
    return TakenIn(
        stalls=fresh - updated,
        updated=updated,
        stalls_known=int(total) - fresh,
        sessions=sessions,
        issues=others,
        remarks=said,
        too_old=old,
    )
