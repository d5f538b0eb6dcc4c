"""Issues, sessions and figures as rows of the store, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopcanary.model import IssueKind, Session, SessionEnd, StallState, TraceFigures
from loopcanary.model.issues.facts import UnknownIssue
from loopcanary.model.search import Remark
from loopcanary.protocols.kinds import kind_in, kind_of
from loopcanary.store.errors import StoreError
from loopcanary.store.search import QUIET, bounded, storable
from loopcanary.wire import UnknownKindError, WireError, from_wire, to_wire
from loopcanary.words.sentences import coded, spoken

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from loopcanary.model import Issue


SESSION = "id, host, pid, started_wall_ns, ended_wall_ns, end, name, version, payload"
ISSUE = (
    "id, session, fingerprint, kind, state, cause, began_wall_ns, duration_ns, search, thread, loop, scene,"
    " in_app"
)
"""The columns of `sessions` and `issues` that are written."""
STATES = "'ongoing killed crashed ended'"
"""For `instr`: a stored issue is replaced by one whose state comes later here, since more is known of it."""
LEFT = "left"
"""The column `end` of a session that ran when its bundle was made: no process here will end it."""


class UnreadableError(StoreError):
    """A stored record is not an issue or run that can be read here. `row`: that of the record, 0 unknown."""

    def __init__(self, reason: str, row: int = 0) -> None:
        super().__init__(f"a stored record cannot be read ({reason})")
        self.reason = reason
        self.row = row


def bound(columns: str) -> str:
    """The columns' values, bound by name."""
    return ", ".join(f":{column.strip()}" for column in columns.split(","))


def excluded(columns: str) -> str:
    """Assignments that give each column the value that was to be inserted."""
    return ", ".join(f"{column} = excluded.{column}" for column in map(str.strip, columns.split(",")))


def issue_columns(issue: Issue) -> dict[str, Any]:
    return {
        "id": storable(issue.id),
        "session": storable(issue.session),
        "fingerprint": storable(issue.fingerprint),
        "kind": issue.kind.value if issue.is_news else issue.kind.value + QUIET,
        "state": issue.state.value,
        "cause": issue.cause.value,
        "began_wall_ns": bounded(issue.began_wall_ns),
        # A crash has a moment, and no length that counts.
        "duration_ns": 0 if issue.state is StallState.CRASHED else bounded(issue.duration_ns),
        "search": storable("\n".join(part for part in _searched(issue) if part).casefold()),
        "thread": storable(issue.thread),
        "loop": storable(issue.loop),
        "scene": storable(issue.scene or ""),
        "in_app": None if issue.culprit is None else int(issue.culprit.in_app),
    }


def _searched(issue: Issue) -> Iterator[str | None]:
    yield from (issue.title, issue.scene, issue.thread, issue.loop, issue.cause.value)
    if issue.culprit is not None:
        yield from (issue.culprit.file, issue.culprit.qualname, issue.culprit.source)
    yield from issue.searched
    if issue.kind != IssueKind.STALL:  # that word would find all that there is
        yield issue.kind.value


def issue_payload(issue: Issue) -> str:
    """The issue as JSON text. ASCII, so that nothing in a name can trouble a reader."""
    if isinstance(issue, UnknownIssue):
        return _to_json(issue.record)
    return _to_json(coded(kind_of(issue).packed(issue)))


def issue_of(payload: str, row: int = 0) -> Issue:
    """The issue of a payload. UnreadableError, with the row, where it is not one."""
    try:
        document = spoken(json.loads(payload))
        found: Issue = kind_in(document).unpacked(document)
    except (UnknownKindError, WireError, ValueError, RecursionError) as error:
        raise UnreadableError(str(error), row) from error
    return found


def traces_payload(figures: TraceFigures) -> str:
    return _to_json(to_wire(figures))


def session_columns(session: Session) -> dict[str, Any]:
    ended = session.ended_wall_ns
    return {
        "id": storable(session.id),
        "host": storable(session.host),
        "pid": bounded(session.pid),
        "started_wall_ns": bounded(session.started_wall_ns),
        "ended_wall_ns": None if ended is None else bounded(ended),
        "end": LEFT if session.end is SessionEnd.RUNNING and not session.is_running else session.end.value,
        "name": storable(session.name),
        "version": storable(session.version or ""),
        "payload": _to_json(to_wire(session)),
    }


def _to_json(value: dict[str, Any]) -> str:
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StoreError(f"a record holds what JSON cannot: {error}") from error


def figures_of(payload: str) -> TraceFigures:
    """The figures in such a text; none where it is not one."""
    try:
        return from_wire(TraceFigures, json.loads(payload))
    except (WireError, ValueError, RecursionError):
        return TraceFigures()


def session_of(payload: str, traces: str | None = None) -> Session:
    """The session of a payload; `traces`: its figures while it ran, for one that did not come to its end.
    UnreadableError where it is not one."""
    try:
        session = from_wire(Session, json.loads(payload))
        if traces is not None and session.traces.is_empty:
            session = replace(session, traces=from_wire(TraceFigures, json.loads(traces)))
    except (WireError, ValueError, RecursionError) as error:
        raise UnreadableError(str(error)) from error
    return session


_NOTE_MAX = 10_000


def read_remarks(connection: sqlite3.Connection) -> dict[str, Remark]:
    rows = connection.execute("SELECT fingerprint, ignored, note FROM remarks")
    return {fingerprint: Remark(ignored=bool(ignored), note=note) for fingerprint, ignored, note in rows}


def write_remark(connection: sqlite3.Connection, fingerprint: str, remark: Remark, now_wall_ns: int) -> None:
    """Replaces the bug's earlier remark; an empty remark only removes it."""
    if remark == Remark():
        connection.execute("DELETE FROM main.remarks WHERE fingerprint = ?", [storable(fingerprint)])
        return
    connection.execute(
        "INSERT OR REPLACE INTO main.remarks VALUES (?, ?, ?, ?)",
        _remark_row(fingerprint, remark, now_wall_ns),
    )


def add_remark(connection: sqlite3.Connection, fingerprint: str, remark: Remark, now_wall_ns: int) -> None:
    """Keeps it, unless something was said before."""
    connection.execute(
        "INSERT OR IGNORE INTO main.remarks VALUES (?, ?, ?, ?)",
        _remark_row(fingerprint, remark, now_wall_ns),
    )


def _remark_row(fingerprint: str, remark: Remark, now_wall_ns: int) -> list[str | int]:
    return [storable(fingerprint), int(remark.ignored), storable(remark.note[:_NOTE_MAX]), now_wall_ns]
