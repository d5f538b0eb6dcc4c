"""The store: where issues and sessions are kept between a program's runs and its reports."""

# ruff: noqa: S608 - statements are put together from this package's own literals; values are bound

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from loopcanary.store import records
from loopcanary.store.errors import StoreError
from loopcanary.store.maintenance import Maintenance
from loopcanary.store.reader import Reader
from loopcanary.store.records import ISSUE, SESSION, bound, excluded
from loopcanary.store.retention import Retention, sweep
from loopcanary.store.search import bounded, storable
from loopcanary.store.sqlite.database import Database
from loopcanary.store.sqlite.overlay import Overlay
from loopcanary.store.unreadable import Unreadable

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import Any

    from loopcanary.model import Issue, Session, TraceFigures
    from loopcanary.model.search import Remark
    from loopcanary.store.intake import Intake, TakenIn

_SWEEP_EVERY = 256

# What is known of an issue only grows: `ongoing` from a process that is slow to write, or a recovery that
# comes late, must not take back how it ended.
_PUT_ISSUE = f"""
INSERT INTO main.issues ({ISSUE}) VALUES ({bound(ISSUE)})
ON CONFLICT (id) DO UPDATE SET {excluded(ISSUE)}
WHERE instr({records.STATES}, excluded.state) >= instr({records.STATES}, issues.state)
RETURNING row
"""
_PUT_SESSION = f"INSERT OR REPLACE INTO main.sessions ({SESSION}) VALUES ({bound(SESSION)})"


class Store:
    """Issues and sessions of any number of processes in one folder.

    Thread-safe; every method raises only StoreError. Nothing is opened before it is needed.
    """

    def __init__(
        self,
        folder: Path,
        *,
        retention: Retention | None = None,
        notify: Callable[[str], object] | None = None,
    ) -> None:
        """Opens nothing yet.

        Args:
            folder: Made where it is not there; one that may only be read can be read.
            retention: What is kept; None: the defaults.
            notify: Gets one line for people when something is out of the ordinary, such as a damaged database
                that was set aside.
        """
        self.folder = folder
        self.notices: list[str] = []
        self._retention = retention or Retention()
        notify = notify or self.notices.append
        self._database = Database(folder, notify=notify)
        self._puts = 0
        self._overlay = Overlay(self._database)
        unreadable = Unreadable(self._database, self._overlay, notify)
        self.reader = Reader(self._database, unreadable)
        """Answers questions."""
        self.maintenance = Maintenance(self._database, self._retention, unreadable)
        """Deletes, and says what is out of the ordinary."""

    @property
    def path(self) -> Path:
        return self._database.path

    @property
    def lender(self) -> int:
        """The user whose store this is, where root reads it; else 0."""
        return self._database.lender

    def open(self) -> None:
        """Opens the database now rather than at the first use, so that what is wrong is said now."""
        self._database.open()

    def close(self) -> None:
        """Closes the database. A later use opens it again."""
        self._database.close()

    def rest(self, patience_s: float) -> bool:
        """Closes the database and keeps every thread from it until `go_on`; False where that takes longer."""
        return self._database.rest(patience_s)

    def go_on(self) -> None:
        """Ends the rest: the next use opens the file again."""
        self._database.go_on()

    def put_session(self, session: Session) -> None:
        """Adds the session, or replaces an earlier state."""
        self.put([session], [])

    def put_issue(self, issue: Issue) -> None:
        """Adds the issue, or replaces an earlier state (same id). Sweeps now and then."""
        self.put([], [issue])

    def put(self, sessions: Iterable[Session], issues: Iterable[Issue]) -> None:
        """Adds many in one transaction: all of them are stored, or none."""
        session_rows = [records.session_columns(session) for session in sessions]
        issue_rows = [(records.issue_columns(issue), records.issue_payload(issue)) for issue in issues]
        self._database.write(lambda connection: _put(connection, session_rows, issue_rows))
        before, self._puts = self._puts, self._puts + len(issue_rows)
        if issue_rows and (before == 0 or before // _SWEEP_EVERY != self._puts // _SWEEP_EVERY):
            sweep(self._database, self._retention, time.time_ns())

    def put_traces(self, session: str, figures: TraceFigures) -> None:
        """A session's figures of frames, input and idle work so far; they replace earlier ones."""
        row = [storable(session), time.time_ns(), records.traces_payload(figures)]
        self._database.write(
            lambda connection: connection.execute("INSERT OR REPLACE INTO main.traces VALUES (?, ?, ?)", row)
        )

    def remark(self, fingerprint: str, remark: Remark) -> None:
        """Replaces the earlier remark on the bug."""
        now = time.time_ns()
        self._database.write(lambda connection: records.write_remark(connection, fingerprint, remark, now))

    def take_in(self, gather: Callable[[Intake], None]) -> TakenIn:
        """Takes in records of other stores: all of them, or nothing where `gather` raises.

        Args:
            gather: Called with what takes the records.

        Returns:
            How many were new, known or too old.

        Raises:
            StoreError: The store cannot be written.
        """
        import sqlite3
        from contextlib import closing
        from pathlib import Path
        from tempfile import TemporaryDirectory

        from loopcanary.store.intake import Intake, merge

        oldest_kept = bounded(time.time_ns() - self._retention.age_ns)
        try:
            with TemporaryDirectory(prefix="loopcanary-import-") as folder:
                with closing(Intake(Path(folder) / "staged.db")) as intake:
                    gather(intake)
                    intake.done()
                return self._database.outside_transaction(
                    lambda connection: merge(connection, intake.path, oldest_kept)
                )
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"the records to import cannot be prepared: {error}") from error

    def overlay(self, sessions: Iterable[Session], issues: Iterable[Issue]) -> None:
        """Shows these live ones in every answer of this object; nothing is written to the database.

        They take the place of what is stored under the same ids.
        """
        session_rows = [records.session_columns(session) for session in sessions]
        issue_rows = [(records.issue_columns(stall), records.issue_payload(stall)) for stall in issues]
        self._overlay.show(session_rows, issue_rows)


def _put(
    connection: sqlite3.Connection,
    sessions: Iterable[dict[str, Any]],
    issues: Iterable[tuple[dict[str, Any], str]],
) -> None:
    for session in sessions:
        connection.execute(_PUT_SESSION, session)
    for columns, payload in issues:
        row = connection.execute(_PUT_ISSUE, columns).fetchone()
        if row is not None:
            connection.execute("INSERT OR REPLACE INTO main.payloads VALUES (?, ?)", [row[0], payload])
