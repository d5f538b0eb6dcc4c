"""Issues, sessions and figures as rows of the store, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopcanary.model import IssueKind, Session, SessionEnd, TraceFigures
from loopcanary.model.issues.unknown import UnknownIssue
from loopcanary.registry import said_of
from loopcanary.store import packing as _packing  # noqa: F401 - the registry names it: not to be loaded in a stall
from loopcanary.store.errors import StoreError
from loopcanary.store.search import QUIET, bounded, storable
from loopcanary.wire import UnknownKindError, WireError, from_wire, issue_from_wire, to_wire, unpack_of
from loopcanary.words.sentences import coded, spoken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.model import Issue

SESSION = "id, host, pid, started_wall_ns, ended_wall_ns, end, name, version, payload"
ISSUE = (
    "id, session, fingerprint, kind, state, cause, began_wall_ns, duration_ns, search, thread, loop, scene,"
    " in_app"
)
"""The columns of `sessions` and `issues` that are written."""
LEFT = "left"
"""The column `end` of a session that ran when its bundle was made: no process here will end it."""


class UnreadableError(StoreError):
    """What is stored is no issue or run that can be read here. `reason`: why; `row`: where, 0 unknown."""

    def __init__(self, reason: str, row: int = 0) -> None:
        super().__init__(f"a stored record cannot be read ({reason})")
        self.reason = reason
        self.row = row


def bound(columns: str) -> str:
    """Their values, bound by name."""
    return ", ".join(f":{column.strip()}" for column in columns.split(","))


def excluded(columns: str) -> str:
    """Each takes the value that was to be inserted."""
    return ", ".join(f"{column} = excluded.{column}" for column in map(str.strip, columns.split(",")))


def issue_columns(issue: Issue) -> dict[str, Any]:
    """A row of `issues`."""
    return {
        "id": storable(issue.id),
        "session": storable(issue.session),
        "fingerprint": storable(issue.fingerprint),
        "kind": issue.kind.value if issue.is_news else issue.kind.value + QUIET,
        "state": issue.state.value,
        "cause": issue.cause.value,
        "began_wall_ns": bounded(issue.began_wall_ns),
        "duration_ns": bounded(issue.duration_ns),
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
    packed = said_of(issue, "packed")
    return _to_json(coded(to_wire(issue) if packed is None else packed))


def issue_of(payload: str, row: int = 0) -> Issue:
    """The issue of a payload. UnreadableError, with the row, where it is not one."""
    try:
        document = spoken(json.loads(payload))
        unpack = unpack_of(document)
        return issue_from_wire(document) if unpack is None else unpack(document)
    except (UnknownKindError, WireError, ValueError, RecursionError) as error:
        raise UnreadableError(str(error), row) from error


def readable_issue(payload: str) -> Issue | None:
    """The issue of a payload; None where it is not one."""
    try:
        return issue_of(payload)
    except UnreadableError:
        return None


def traces_payload(figures: TraceFigures) -> str:
    """Figures of traces as JSON text."""
    return _to_json(to_wire(figures))


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
