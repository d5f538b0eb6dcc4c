"""Questions to the store as SQL, and its rows as values."""

# ruff: noqa: S608 - statements are put together from this package's own literals; values are bound

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopcanary.model import (
    IssueKind,
    LagIssue,
    Session,
    SessionEnd,
    SlowMethod,
    Stall,
    Startup,
    TraceFigures,
)
from loopcanary.model.issues.issue import is_news
from loopcanary.model.search import IssueGroup, StallMark, StallQuery
from loopcanary.store.errors import StoreError
from loopcanary.store.packing import pack, unpack
from loopcanary.wire import WireError, from_wire, issue_from_wire, to_wire

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

_UNREADABLE = "a newer loopcanary wrote it, or it is damaged: upgrade, or remove it with `loopcanary clean`"
LEFT = "left"
"""The column `end` of a session that ran when its bundle was made: nobody here will ever end it."""
_LAST_CHARACTER = "\U0010ffff"
_LARGEST = (1 << 62) - 1
_NO_NEWS = "start"
"""The column `kind` of a start within its limit, so that sums leave it out without reading it."""


def condition(query: StallQuery) -> tuple[str, list[Any]]:
    """The WHERE clause of a query and its values; an empty clause for a query without conditions."""
    terms: list[tuple[str, list[Any]]] = []
    if query.since_wall_ns is not None:
        terms.append(("began_wall_ns >= ?", [bounded(query.since_wall_ns)]))
    if query.until_wall_ns is not None:
        terms.append(("began_wall_ns < ?", [bounded(query.until_wall_ns)]))
    if query.causes:
        marks = ", ".join("?" * len(query.causes))
        terms.append((f"cause IN ({marks})", sorted(cause.value for cause in query.causes)))
    if query.session is not None:
        terms.append(("session >= ? AND session < ?", prefix_range(query.session)))
    if query.fingerprint is not None:
        terms.append(("fingerprint = ?", [storable(query.fingerprint)]))
    if query.scene is not None:
        terms.append(("scene = ?", [storable(query.scene)]))
    if query.in_app is not None:
        terms.append(("in_app = ?", [int(query.in_app)]))
    if query.kind is not None:
        kinds = [query.kind.value, *([_NO_NEWS] if query.kind is IssueKind.STARTUP else [])]
        terms.append((f"kind IN ({', '.join('?' * len(kinds))})", kinds))
    # instr, not LIKE: no wildcards to escape, and both sides were folded by the same rules.
    terms += [("instr(search, ?) > 0", [storable(word.casefold())]) for word in query.words]
    clause = " AND ".join(term for term, _ in terms)
    return (f"WHERE {clause}" if clause else ""), [value for _, values in terms for value in values]


def issue_group_condition(query: StallQuery) -> tuple[str, list[Any]]:
    """As `condition`, for sums over issues that are no stalls: starts within their limit are kept for the
    course of starts and are no bugs, so they count only where starts, or this very group, are asked for."""
    clause, values = condition(query)
    if query.kind is None and query.fingerprint is None:
        clause, values = narrowed(clause, "kind <> ?"), [*values, _NO_NEWS]
    return clause, values


def session_condition(query: StallQuery) -> tuple[str, list[Any]]:
    """The WHERE clause of the sessions that ran in the query's time, and its values."""
    latest = bounded(1 << 63)
    until = latest if query.until_wall_ns is None else bounded(query.until_wall_ns)
    since = -latest if query.since_wall_ns is None else bounded(query.since_wall_ns)
    clause = "WHERE id >= ? AND id < ? AND started_wall_ns < ? AND coalesce(ended_wall_ns, ?) >= ?"
    return clause, [*prefix_range(query.session or ""), until, latest, since]


def narrowed(clause: str, term: str) -> str:
    """The clause with one more term."""
    return f"{clause} AND {term}" if clause else f"WHERE {term}"


def prefix_range(prefix: str) -> list[str]:
    """Bounds, low included, high excluded, of the texts that begin so: found by index."""
    return [storable(prefix), storable(prefix) + _LAST_CHARACTER]


def bounded(number: int) -> int:
    """The number, or the nearest one that a column holds."""
    return min(max(number, -_LARGEST), _LARGEST)


def storable(text: str) -> str:
    """The text with what UTF-8 cannot hold (lone surrogates of undecodable names) written as escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def stall_columns(stall: Stall) -> dict[str, Any]:
    """A row of `stalls`."""
    return {
        "id": storable(stall.id),
        "session": storable(stall.session),
        "fingerprint": storable(stall.fingerprint),
        "kind": IssueKind.STALL.value,
        "state": stall.state.value,
        "cause": stall.cause.value,
        "began_wall_ns": bounded(stall.began_wall_ns),
        "duration_ns": bounded(stall.duration_ns),
        "search": storable(_searched(stall)),
        "thread": storable(stall.thread),
        "loop": storable(stall.loop),
        "scene": storable(stall.scene or ""),
        "in_app": None if stall.culprit is None else int(stall.culprit.in_app),
    }


def _searched(stall: Stall) -> str:
    parts = [
        stall.title,
        stall.callback,
        stall.task,
        stall.scene,
        stall.thread,
        stall.loop,
        stall.cause.value,
    ]
    if stall.culprit is not None:
        parts += [stall.culprit.file, stall.culprit.qualname, stall.culprit.source]
    if stall.blocker is not None:
        parts += [stall.blocker.call, stall.blocker.function]
    return "\n".join(part for part in parts if part).casefold()


def issue_columns(issue: LagIssue) -> dict[str, Any]:
    """A row of `issues`."""
    return {
        "id": storable(issue.id),
        "session": storable(issue.session),
        "fingerprint": storable(issue.fingerprint),
        "kind": issue.kind.value if is_news(issue) else _NO_NEWS,
        "cause": issue.cause.value,
        "began_wall_ns": bounded(issue.began_wall_ns),
        "duration_ns": bounded(issue.duration_ns),
        "search": storable(_searched_issue(issue)),
        "payload": _to_json(to_wire(issue)),
    }


def _searched_issue(issue: LagIssue) -> str:
    parts = [issue.kind.value, issue.title, issue.scene, issue.thread, issue.loop, issue.cause.value]
    if issue.culprit is not None:
        parts += [issue.culprit.file, issue.culprit.qualname, issue.culprit.source]
    if isinstance(issue, Startup):
        parts += [issue.program, issue.start.value, *(phase.name for phase in issue.phases)]
    if isinstance(issue, SlowMethod):
        parts += [row.frame.qualname for row in issue.rows]
    return "\n".join(part for part in parts if part).casefold()


def issue_of(payload: str) -> LagIssue:
    """The issue of a payload. StoreError where it is not one."""
    try:
        return issue_from_wire(json.loads(payload))
    except (WireError, ValueError, RecursionError) as error:
        raise StoreError(f"a stored issue cannot be read ({error}): {_UNREADABLE}") from error


def traces_payload(figures: TraceFigures) -> str:
    """Figures of traces as JSON text."""
    return _to_json(to_wire(figures))


def stall_payload(stall: Stall) -> str:
    """The stall as JSON text. ASCII, so that nothing in a name can trouble a reader."""
    return _to_json(pack(stall))


def session_columns(session: Session) -> dict[str, Any]:
    """A row of `sessions`."""
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


def stall_of(payload: str) -> Stall:
    """The stall of a payload. StoreError where it is not one."""
    try:
        return unpack(json.loads(payload))
    except (WireError, ValueError, RecursionError) as error:
        raise StoreError(f"a stored stall cannot be read ({error}): {_UNREADABLE}") from error


def session_of(payload: str, traces: str | None = None) -> Session:
    """The session of a payload; `traces`: what it told while it ran, for one that did not come to its end.
    StoreError where it is not one."""
    try:
        session = from_wire(Session, json.loads(payload))
        if traces is not None and session.traces.is_empty:
            session = replace(session, traces=from_wire(TraceFigures, json.loads(traces)))
    except (WireError, ValueError, RecursionError) as error:
        raise StoreError(f"a stored session cannot be read ({error}): {_UNREADABLE}") from error
    return session


def marks(
    connection: sqlite3.Connection, query: StallQuery, fingerprints: Sequence[str] | None
) -> list[StallMark]:
    """The stalls that the query finds, of these groups, in short."""
    columns = "fingerprint, session, thread, loop, began_wall_ns, duration_ns"
    clause, values = condition(query)
    if fingerprints is None:
        rows = connection.execute(f"SELECT {columns} FROM stalls {clause}", values)
        return [StallMark._make(row) for row in rows]
    clause = narrowed(clause, "fingerprint = ?")
    statement = f"SELECT {columns} FROM stalls {clause}"
    return [
        StallMark._make(row)
        for fingerprint in fingerprints
        for row in connection.execute(statement, [*values, storable(fingerprint)])
    ]


def issue_groups(connection: sqlite3.Connection, query: StallQuery, limit: int) -> list[IssueGroup]:
    """Groups of issues that are no stalls by total time, largest first, at most `limit`; 0: all."""
    clause, values = issue_group_condition(query)
    rows = connection.execute(
        f"""SELECT fingerprint, count(*), CAST(total(duration_ns) AS INTEGER),
                   min(began_wall_ns), max(began_wall_ns)
            FROM issues {clause} GROUP BY fingerprint ORDER BY 3 DESC, 1 LIMIT ?""",
        [*values, limit or -1],
    ).fetchall()
    return [_issue_group(connection, clause, values, row) for row in rows]


def _issue_group(
    connection: sqlite3.Connection, clause: str, values: list[Any], row: tuple[Any, ...]
) -> IssueGroup:
    fingerprint, count, total, first, last = row
    clause, values = narrowed(clause, "fingerprint = ?"), [*values, fingerprint]

    def pick(column: str, order: str, offset: int = 0) -> Any:
        statement = f"SELECT {column} FROM issues {clause} ORDER BY {order} LIMIT 1 OFFSET {offset}"
        return connection.execute(statement, values).fetchone()[0]

    return IssueGroup(
        fingerprint=fingerprint,
        count=count,
        total_ns=total,
        p50_ns=pick("duration_ns", "duration_ns", (count - 1) // 2),
        first_wall_ns=first,
        last_wall_ns=last,
        worst=issue_of(pick("payload", "duration_ns DESC, began_wall_ns DESC")),
    )
