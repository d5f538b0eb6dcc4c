"""The store: where issues and sessions are kept between a program's runs and its reports."""

# ruff: noqa: S608 - statements are put together from this package's own literals; values are bound

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from loopcanary.model import IssueKind, LagIssue, Session, SessionEnd, Stall, StallState, TraceFigures
from loopcanary.model.search import (
    GroupSums,
    IssueGroup,
    Remark,
    SessionMark,
    StallGroup,
    StallMark,
    StallQuery,
    StallTime,
    TimeCell,
)
from loopcanary.store import schema, search
from loopcanary.store.database import Database
from loopcanary.store.errors import StoreError
from loopcanary.store.retention import OVER_AND_EMPTY, Retention, give_back_space, sweep, used_bytes

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
    from pathlib import Path

    from loopcanary.store.damage import Aside
    from loopcanary.store.intake import Intake, TakenIn

_T = TypeVar("_T")
_SWEEP_EVERY = 256
"""Stalls put between two sweeps."""
_DELETE_BATCH = 1_000
_READ_BATCH = 32

# What is known of a stall only grows: `ongoing` from a process that is slow to write, or a recovery that
# comes late, must not take back how it ended.
_PUT_STALL = """
INSERT INTO main.stalls
    (id, session, fingerprint, kind, state, cause, began_wall_ns, duration_ns, search, thread, loop,
     scene, in_app)
VALUES
    (:id, :session, :fingerprint, :kind, :state, :cause, :began_wall_ns, :duration_ns, :search,
     :thread, :loop, :scene, :in_app)
ON CONFLICT (id) DO UPDATE SET
    session = excluded.session, fingerprint = excluded.fingerprint, kind = excluded.kind,
    state = excluded.state, cause = excluded.cause, began_wall_ns = excluded.began_wall_ns,
    duration_ns = excluded.duration_ns, search = excluded.search, thread = excluded.thread,
    loop = excluded.loop, scene = excluded.scene, in_app = excluded.in_app
WHERE instr('ongoing killed ended', excluded.state) >= instr('ongoing killed ended', stalls.state)
RETURNING row
"""
_PUT_ISSUE = """
INSERT OR REPLACE INTO main.issues
    (id, session, fingerprint, kind, cause, began_wall_ns, duration_ns, search, payload)
VALUES
    (:id, :session, :fingerprint, :kind, :cause, :began_wall_ns, :duration_ns, :search, :payload)
"""
_PAYLOAD = "SELECT payload FROM payloads WHERE row = ?"
_PUT_SESSION = """
INSERT OR REPLACE INTO main.sessions
    (id, host, pid, started_wall_ns, ended_wall_ns, end, name, version, payload)
VALUES
    (:id, :host, :pid, :started_wall_ns, :ended_wall_ns, :end, :name, :version, :payload)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over the stalls that a query finds."""

    stalls: int
    groups: int
    total_ns: int


class Store:
    """Issues and sessions of any number of processes in one folder.

    Thread-safe; every method raises only StoreError. Nothing is opened before it is needed.
    `folder` is made where it is not there; one that may only be read can be read. `notify` gets one line
    for people when something is out of the ordinary, such as a damaged database that was set aside.
    """

    def __init__(
        self,
        folder: Path,
        *,
        retention: Retention | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self.folder = folder
        self.notices: list[str] = []
        self._retention = retention or Retention()
        self._database = Database(folder, notify=notify or self.notices.append)
        self._puts = 0

    @property
    def path(self) -> Path:
        """The database file."""
        return self._database.path

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
        """The rest is over."""
        self._database.go_on()

    # ---- writing (the Sink protocol, and recovery) ---------------------------------------------

    def put_session(self, session: Session) -> None:
        """Adds the session or replaces what is known of it."""
        self.put([session], [])

    def put_stall(self, stall: Stall) -> None:
        """Adds the stall, or replaces an earlier state of it (same id). Sweeps now and then."""
        self.put([], [stall])

    def put(self, sessions: Iterable[Session], stalls: Iterable[Stall]) -> None:
        """Adds many in one transaction: all of them are stored, or none."""
        session_rows = [search.session_columns(session) for session in sessions]
        stall_rows = [(search.stall_columns(stall), search.stall_payload(stall)) for stall in stalls]
        self._database.write(lambda connection: _put(connection, session_rows, stall_rows))
        before, self._puts = self._puts, self._puts + len(stall_rows)
        if stall_rows and (before == 0 or before // _SWEEP_EVERY != self._puts // _SWEEP_EVERY):
            self.sweep()

    def put_issue(self, issue: LagIssue) -> None:
        """Adds an issue that is no stall, or replaces it (same id)."""
        row = search.issue_columns(issue)
        self._database.write(lambda connection: connection.execute(_PUT_ISSUE, row))

    def put_traces(self, session: str, figures: TraceFigures) -> None:
        """What a session's frames, input and idle work tell so far; replaces what they told before."""
        row = [search.storable(session), time.time_ns(), search.traces_payload(figures)]
        self._database.write(
            lambda connection: connection.execute("INSERT OR REPLACE INTO main.traces VALUES (?, ?, ?)", row)
        )

    def sweep(self) -> int:
        """Removes what retention does not keep; the number of stalls removed."""
        return sweep(self._database, self._retention, time.time_ns())

    def take_in(self, gather: Callable[[Intake], None]) -> TakenIn:
        """Takes in records of other stores that `gather` adds: all of them, or nothing where it raises."""
        import sqlite3
        from pathlib import Path
        from tempfile import TemporaryDirectory

        from loopcanary.store.intake import Intake, merge

        oldest_kept = search.bounded(time.time_ns() - self._retention.age_ns)
        try:
            with TemporaryDirectory(prefix="loopcanary-import-") as folder:
                with Intake(Path(folder) / "staged.db") as intake:
                    gather(intake)
                    intake.done()
                return self._database.outside_transaction(
                    lambda connection: merge(connection, intake.path, oldest_kept)
                )
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"what is to be imported cannot be put together: {error}") from error

    def shrink(self, most_bytes: int) -> int:
        """Removes the oldest stalls and issues until the rest takes no more; the number of stalls removed."""
        narrow = Retention(age_ns=1 << 62, stalls=1 << 62, bytes=most_bytes)
        removed = 0
        while self.used_bytes() > most_bytes and self._holds_something():
            removed += sweep(self._database, narrow, time.time_ns())
        return removed

    def _holds_something(self) -> bool:
        statement = "SELECT EXISTS (SELECT 1 FROM main.stalls) OR EXISTS (SELECT 1 FROM main.issues)"
        return bool(self._database.read(lambda connection: connection.execute(statement).fetchone()[0]))

    # ---- deleting --------------------------------------------------------------------------

    def delete(self, query: StallQuery) -> int:
        """Deletes the stalls that the query finds, and gives their number; other issues go as well.

        A query by time alone also deletes the ended sessions of that time that have no stalls left.
        """
        clause, values = search.condition(query)
        issues = self._database.write(
            lambda connection: connection.execute(f"DELETE FROM issues {clause}", values).rowcount
        )
        deleted = self._delete_rows(clause, values, others=issues)
        if query == StallQuery(until_wall_ns=query.until_wall_ns):
            self._delete_sessions(query.until_wall_ns)
        return deleted

    def delete_ids(self, ids: Sequence[str]) -> int:
        """Deletes the stalls with these ids; the number there were."""
        marks = ", ".join("?" * len(ids))
        return self._delete_rows(f"WHERE id IN ({marks})", list(ids))

    def delete_as_seen(self, seen: Iterable[tuple[str, StallState]]) -> int:
        """Deletes those of these stalls, by id, that still are in the state in which they were seen; the
        number deleted."""
        rows = [(search.storable(stall_id), state.value) for stall_id, state in seen]
        statement = "DELETE FROM main.stalls WHERE id = ? AND state = ?"
        deleted = 0
        for begin in range(0, len(rows), _DELETE_BATCH):
            some = rows[begin : begin + _DELETE_BATCH]
            deleted += self._database.write(partial(_delete_each, statement, some))
        if deleted:
            self._database.outside_transaction(give_back_space)
        return deleted

    def delete_issues(self, ids: Sequence[str]) -> int:
        """Deletes the issues that are no stalls with these ids; the number deleted."""
        rows = [(search.storable(one),) for one in ids]
        statement = "DELETE FROM main.issues WHERE id = ?"
        return self._database.write(lambda connection: connection.executemany(statement, rows).rowcount)

    def delete_all_but_newest(self, keep: int) -> int:
        """Deletes all stalls except the newest `keep`; the number deleted."""
        newest = "SELECT row FROM main.stalls ORDER BY began_wall_ns DESC, row DESC LIMIT ?"
        return self._delete_rows(f"WHERE row NOT IN ({newest})", [max(keep, 0)])

    def _delete_rows(self, clause: str, values: list[Any], *, others: int = 0) -> int:
        chosen = f"SELECT row FROM main.stalls {clause} LIMIT {_DELETE_BATCH}"
        statement = f"DELETE FROM main.stalls WHERE row IN ({chosen})"
        deleted = 0
        while True:
            batch = self._database.write(lambda connection: connection.execute(statement, values).rowcount)
            deleted += batch
            if batch < _DELETE_BATCH:
                break
        if deleted or others:
            self._database.outside_transaction(give_back_space)
        return deleted

    def _delete_sessions(self, until_wall_ns: int | None) -> None:
        statement = f"DELETE FROM main.sessions WHERE started_wall_ns < ? AND {OVER_AND_EMPTY}"
        until = search.bounded(1 << 63 if until_wall_ns is None else until_wall_ns)
        self._database.write(lambda connection: connection.execute(statement, [until]))

    # ---- reading ---------------------------------------------------------------------------

    def overlay(self, sessions: Iterable[Session], stalls: Iterable[Stall]) -> None:
        """Shows these live ones in every answer of this object; nothing is written to the database.

        They take the place of what is stored under the same ids.
        """
        session_rows = [search.session_columns(session) for session in sessions]
        stall_rows = [(search.stall_columns(stall), search.stall_payload(stall)) for stall in stalls]
        self._database.on_connect(lambda connection: _lay_over(connection, session_rows, stall_rows))

    def state(self) -> Hashable:
        """Another one whenever an answer may have changed; cheap to ask for."""
        return self._database.state()

    def totals(self, query: StallQuery) -> Totals:
        """How many stalls and groups the query finds, and their time."""
        return self._totals("stalls", search.condition(query))

    def _totals(self, table: str, condition: tuple[str, list[Any]]) -> Totals:
        clause, values = condition
        statement = f"""SELECT count(*), count(DISTINCT fingerprint), CAST(total(duration_ns) AS INTEGER)
                        FROM {table} {clause}"""
        row = self._database.read(lambda connection: connection.execute(statement, values).fetchone())
        return Totals(stalls=row[0], groups=row[1], total_ns=row[2])

    def group_sums(self, query: StallQuery) -> list[GroupSums]:
        """All groups in short, by total time, largest first."""
        return self._group_sums("stalls", query, search.condition(query))

    def issue_group_sums(self, query: StallQuery) -> list[GroupSums]:
        """All groups of issues that are no stalls in short, by total time, largest first."""
        return self._group_sums("issues", query, search.issue_group_condition(query))

    def _group_sums(self, table: str, query: StallQuery, condition: tuple[str, list[Any]]) -> list[GroupSums]:
        clause, values = condition
        # The sign keeps the index of groups out where texts are read: it would lead to each row by itself.
        key = "+fingerprint" if query.words else "fingerprint"
        statement = f"""SELECT fingerprint, count(*), CAST(total(duration_ns) AS INTEGER)
                        FROM {table} {clause} GROUP BY {key} ORDER BY 3 DESC, 1"""
        rows = self._database.read(lambda connection: connection.execute(statement, values).fetchall())
        return [GroupSums._make(row) for row in rows]

    def groups(
        self, query: StallQuery, limit: int = 0, fingerprints: Sequence[str] | None = None
    ) -> list[StallGroup]:
        """Groups by total time, largest first; limit 0: all. `fingerprints`: of these only."""
        from loopcanary.store import grouping

        return self._database.read(lambda connection: grouping.groups(connection, query, limit, fingerprints))

    def stalls(self, query: StallQuery, limit: int = 0) -> list[Stall]:
        """Stalls, newest first; limit 0: all."""
        clause, values = search.condition(query)
        statement = f"SELECT row FROM stalls {clause} ORDER BY began_wall_ns DESC, row DESC LIMIT ?"

        def payloads(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute(statement, [*values, limit or -1]).fetchall()
            # Not a join: over the overlay's view it would read every payload there is.
            return [connection.execute(_PAYLOAD, row).fetchone()[0] for row in rows]

        return [search.stall_of(payload) for payload in self._database.read(payloads)]

    def row_before(self, wall_ns: int) -> int:
        """The row before the first stored stall that began then or later; where there is none, the last."""
        first = "SELECT min(row) - 1 FROM main.stalls WHERE began_wall_ns >= ?"
        statement = f"SELECT coalesce(({first}), (SELECT max(row) FROM main.stalls), 0)"
        values = [search.bounded(wall_ns)]
        row = self._database.read(lambda connection: connection.execute(statement, values).fetchone())
        return int(row[0])

    def last_row(self) -> int:
        """The latest stored stall's row; 0 without any."""
        statement = "SELECT coalesce(max(row), 0) FROM main.stalls"
        row = self._database.read(lambda connection: connection.execute(statement).fetchone())
        return int(row[0])

    def stalls_after(self, row: int, limit: int) -> list[tuple[int, Stall | None]]:
        """Stored stalls of later rows, which is those that were stored later, each with its row. None: one
        that cannot be read, and holds up no other; pages and reports tell of it."""
        statement = "SELECT row, payload FROM main.payloads WHERE row > ? ORDER BY row LIMIT ?"
        values = [row, limit]
        found = self._database.read(lambda connection: connection.execute(statement, values).fetchall())
        return [(number, _readable(search.stall_of, payload)) for number, payload in found]

    def issue_row_before(self, wall_ns: int) -> int:
        """As `row_before`, of issues that are no stalls."""
        first = "SELECT min(row) - 1 FROM issues WHERE began_wall_ns >= ?"
        statement = f"SELECT coalesce(({first}), (SELECT max(row) FROM issues), 0)"
        values = [search.bounded(wall_ns)]
        row = self._database.read(lambda connection: connection.execute(statement, values).fetchone())
        return int(row[0])

    def last_issue_row(self) -> int:
        """The row of the latest stored issue that is no stall; 0 without any."""
        statement = "SELECT coalesce(max(row), 0) FROM issues"
        row = self._database.read(lambda connection: connection.execute(statement).fetchone())
        return int(row[0])

    def issues_after(self, row: int, limit: int) -> list[tuple[int, LagIssue | None]]:
        """Issues that are no stalls of later rows, each with its row; None as in `stalls_after`. One stored
        anew gets another. Rows of other kinds than issues have are left out."""
        kinds = [kind.value for kind in IssueKind]
        marks = ", ".join("?" * len(kinds))
        statement = (
            f"SELECT row, payload FROM issues WHERE row > ? AND kind IN ({marks}) ORDER BY row LIMIT ?"
        )
        values = [row, *kinds, limit]
        found = self._database.read(lambda connection: connection.execute(statement, values).fetchall())
        return [(number, _readable(search.issue_of, payload)) for number, payload in found]

    def each_stall(self, query: StallQuery) -> Iterator[Stall]:
        """Stalls by session, in it by thread, in that oldest first. A few are in memory at a time."""
        clause, values = search.condition(query)
        statement = f"SELECT row FROM stalls {clause} ORDER BY session, thread, loop, began_wall_ns, id"
        for payload in self._each_payload(statement, values, _PAYLOAD):
            yield search.stall_of(payload)

    def each_issue(self, query: StallQuery) -> Iterator[LagIssue]:
        """Issues that are no stalls by session, in it oldest first. A few are in memory at a time."""
        clause, values = search.condition(query)
        statement = f"SELECT row FROM issues {clause} ORDER BY session, began_wall_ns, id"
        for payload in self._each_payload(statement, values, "SELECT payload FROM issues WHERE row = ?"):
            yield search.issue_of(payload)

    def _each_payload(self, statement: str, values: list[Any], one: str) -> Iterator[str]:
        rows = self._database.read(lambda connection: connection.execute(statement, values).fetchall())

        def payloads(some: list[tuple[int]], connection: sqlite3.Connection) -> list[str]:
            found = [connection.execute(one, row).fetchone() for row in some]
            return [payload[0] for payload in found if payload is not None]  # others were deleted meanwhile

        for begin in range(0, len(rows), _READ_BATCH):
            yield from self._database.read(partial(payloads, rows[begin : begin + _READ_BATCH]))

    def first_wall_ns(self, query: StallQuery) -> int | None:
        """When the first stall that the query finds began; None where it finds none."""
        clause, values = search.condition(query)
        statement = f"SELECT min(began_wall_ns) FROM stalls {clause}"
        row = self._database.read(lambda connection: connection.execute(statement, values).fetchone())
        return None if row[0] is None else int(row[0])

    def stall(self, stall_id: str) -> Stall | None:
        """The stall with this id."""
        statement = "SELECT payload FROM payloads WHERE row = (SELECT row FROM stalls WHERE id = ?)"
        values = [search.storable(stall_id)]
        row = self._database.read(lambda connection: connection.execute(statement, values).fetchone())
        return None if row is None else search.stall_of(row[0])

    def issues(self, query: StallQuery, limit: int = 0) -> list[LagIssue]:
        """Issues that are no stalls, newest first; limit 0: all."""
        clause, values = search.condition(query)
        statement = f"SELECT payload FROM issues {clause} ORDER BY began_wall_ns DESC, row DESC LIMIT ?"
        values.append(limit or -1)
        rows = self._database.read(lambda connection: connection.execute(statement, values).fetchall())
        return [search.issue_of(payload) for (payload,) in rows]

    def issue(self, issue_id: str) -> LagIssue | None:
        """The issue that is no stall with this id."""
        statement = "SELECT payload FROM issues WHERE id = ?"
        values = [search.storable(issue_id)]
        row = self._database.read(lambda connection: connection.execute(statement, values).fetchone())
        return None if row is None else search.issue_of(row[0])

    def issue_groups(self, query: StallQuery, limit: int = 0) -> list[IssueGroup]:
        """Groups of issues that are no stalls by total time, largest first; limit 0: all."""
        return self._database.read(lambda connection: search.issue_groups(connection, query, limit))

    def issue_totals(self, query: StallQuery) -> Totals:
        """How many issues that are no stalls the query finds, of how many groups, and their time."""
        return self._totals("issues", search.issue_group_condition(query))

    def marks(self, query: StallQuery, fingerprints: Sequence[str] | None = None) -> list[StallMark]:
        """Stalls in short, in no order; `fingerprints`: of these groups only."""
        return self._database.read(lambda connection: search.marks(connection, query, fingerprints))

    def stall_times(self, query: StallQuery, sessions: Sequence[str] | None = None) -> list[StallTime]:
        """In no order; `sessions`: of these only."""
        from loopcanary.store import grouping

        return self._database.read(lambda connection: grouping.stall_times(connection, query, sessions))

    def time_cells(
        self,
        query: StallQuery,
        key: Literal["fingerprint", "cause"],
        *,
        begin_wall_ns: int,
        step_ns: int,
        cells: int,
        keys: Sequence[str] | None = None,
    ) -> list[TimeCell]:
        """Stalls by key and span of time, in no order: `cells` spans of `step_ns` from `begin_wall_ns` on.
        `keys`: these only."""
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
        """Names of all scenes of stalls, in order."""
        statement = "SELECT DISTINCT scene FROM stalls WHERE scene <> '' ORDER BY 1"
        rows = self._database.read(lambda connection: connection.execute(statement).fetchall())
        return [scene for (scene,) in rows]

    def remarks(self) -> dict[str, Remark]:
        """What people said of bugs, by fingerprint."""
        from loopcanary.store import remarks

        return self._database.read(remarks.read)

    def remark(self, fingerprint: str, remark: Remark) -> None:
        """Puts this in the place of what was said of the bug before."""
        from loopcanary.store import remarks

        now = time.time_ns()
        self._database.write(lambda connection: remarks.write(connection, fingerprint, remark, now))

    def sessions(self, query: StallQuery, limit: int = 0) -> list[Session]:
        """Sessions that ran in the query's time, newest first; limit 0: all."""
        clause, values = search.session_condition(query)
        statement = f"""SELECT payload, (SELECT traces.payload FROM traces WHERE session = sessions.id)
                        FROM sessions {clause} ORDER BY started_wall_ns DESC, id LIMIT ?"""
        values.append(limit or -1)
        rows = self._database.read(lambda connection: connection.execute(statement, values).fetchall())
        return [search.session_of(payload, traces) for payload, traces in rows]

    def session(self, session_id: str) -> Session | None:
        """The session with this id."""
        statement = """SELECT payload, (SELECT traces.payload FROM traces WHERE session = sessions.id)
                       FROM sessions WHERE id = ?"""
        values = [search.storable(session_id)]
        row = self._database.read(lambda connection: connection.execute(statement, values).fetchone())
        return None if row is None else search.session_of(*row)

    def session_marks(self, query: StallQuery) -> list[SessionMark]:
        """All sessions that ran in the query's time, in short, newest first."""
        clause, values = search.session_condition(query)
        statement = f"""SELECT id, name, version, started_wall_ns, ended_wall_ns, end = 'killed'
                        FROM sessions {clause} ORDER BY started_wall_ns DESC, id"""
        rows = self._database.read(lambda connection: connection.execute(statement, values).fetchall())
        return [SessionMark._make([*mark, bool(killed)]) for *mark, killed in rows]

    def fingerprints_like(self, prefix: str, limit: int = 10) -> list[str]:
        """Fingerprints of stalls that begin so, in order."""
        return self._like("fingerprint", prefix, limit)

    def ids_like(self, prefix: str, limit: int = 10) -> list[str]:
        """Ids of stalls that begin so, in order."""
        return self._like("id", prefix, limit)

    def issue_fingerprints_like(self, prefix: str, limit: int = 10) -> list[str]:
        """Fingerprints of issues that are no stalls that begin so, in order."""
        return self._like("fingerprint", prefix, limit, "issues")

    def issue_ids_like(self, prefix: str, limit: int = 10) -> list[str]:
        """Ids of issues that are no stalls that begin so, in order."""
        return self._like("id", prefix, limit, "issues")

    def _like(self, column: str, prefix: str, limit: int, table: str = "stalls") -> list[str]:
        statement = (
            f"SELECT DISTINCT {column} FROM {table} WHERE {column} >= ? AND {column} < ? ORDER BY 1 LIMIT ?"
        )
        values = [*search.prefix_range(prefix), limit]
        return [
            row[0]
            for row in self._database.read(
                lambda connection: connection.execute(statement, values).fetchall()
            )
        ]

    def running_sessions(self, host: str) -> list[Session]:
        """Stored sessions of this host of which no end is known."""
        statement = "SELECT payload FROM main.sessions WHERE end = ? AND host = ?"
        values = [SessionEnd.RUNNING.value, search.storable(host)]
        rows = self._database.read(lambda connection: connection.execute(statement, values).fetchall())
        return [search.session_of(payload) for (payload,) in rows]

    def ongoing_stalls(self, session: str) -> list[Stall]:
        """Stalls of a session that were stored while they lasted and never completed."""
        statement = """SELECT payload FROM main.payloads WHERE row IN
                       (SELECT row FROM main.stalls WHERE session = ? AND state = ?)"""
        values = [search.storable(session), StallState.ONGOING.value]
        rows = self._database.read(lambda connection: connection.execute(statement, values).fetchall())
        return [search.stall_of(payload) for (payload,) in rows]

    def last_sign_wall_ns(self, session: str) -> int | None:
        """When a session's last stored stall was over, None where it has none."""
        statement = "SELECT max(began_wall_ns + duration_ns) FROM main.stalls WHERE session = ?"
        values = [search.storable(session)]
        row = self._database.read(lambda connection: connection.execute(statement, values).fetchone())
        return None if row[0] is None else int(row[0])

    def set_aside(self) -> list[Aside]:
        """Damaged databases that were set aside in the folder, by anybody, newest first. Raises nothing."""
        from loopcanary.store.damage import set_aside_in

        return set_aside_in(self.folder)

    def used_bytes(self) -> int:
        """Bytes that the database holds."""
        return self._database.read(used_bytes)


def _delete_each(statement: str, rows: Sequence[tuple[str, ...]], connection: sqlite3.Connection) -> int:
    return connection.executemany(statement, rows).rowcount


def _put(
    connection: sqlite3.Connection,
    sessions: Iterable[dict[str, Any]],
    stalls: Iterable[tuple[dict[str, Any], str]],
) -> None:
    for session in sessions:
        connection.execute(_PUT_SESSION, session)
    for columns, payload in stalls:
        row = connection.execute(_PUT_STALL, columns).fetchone()
        if row is not None:
            connection.execute("INSERT OR REPLACE INTO main.payloads VALUES (?, ?)", [row[0], payload])


def _lay_over(
    connection: sqlite3.Connection,
    sessions: Iterable[dict[str, Any]],
    stalls: Sequence[tuple[dict[str, Any], str]],
) -> None:
    if schema.version_of(connection) < schema.VERSION:
        return  # one that may not be changed, and has temporary views of its own
    covered = connection.execute("SELECT 1 FROM temp.sqlite_master WHERE name = 'live_stalls'").fetchone()
    statements = [] if covered else list(schema.OVERLAY)
    statements += schema.NO_STALLS_OVERLAY
    statements += schema.STALLS_OVERLAY if stalls else ()
    for statement in statements:
        connection.execute(statement)
    for table in ("live_sessions", "live_stalls", "live_payloads"):
        connection.execute(f"DELETE FROM temp.{table}")
    for session in sessions:
        _insert(connection, "live_sessions", session)
    for number, (columns, payload) in enumerate(stalls, start=1):
        # Negative rows: no stored stall has one.
        _insert(connection, "live_stalls", {"row": -number, **columns})
        _insert(connection, "live_payloads", {"row": -number, "payload": payload})


def _insert(connection: sqlite3.Connection, table: str, columns: dict[str, Any]) -> None:
    names = ", ".join(columns)
    marks = ", ".join(f":{name}" for name in columns)
    connection.execute(f"INSERT INTO temp.{table} ({names}) VALUES ({marks})", columns)


def _readable(read: Callable[[str], _T], payload: str) -> _T | None:
    try:
        return read(payload)
    except StoreError:
        return None
