"""Questions to the store as SQL."""

# ruff: noqa: S608 - statements are put together from this package's own literals; values are bound

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from loopcanary.model import IssueKind
from loopcanary.model.search import IssueMark, IssueQuery
from loopcanary.protocols.kinds import readable_kinds
from loopcanary.registry import KINDS, REGISTRY
from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    import sqlite3

QUIET = "-quiet"
"""Ends the column `kind` of an issue that is not news, such as a start within its limit, so that sums leave
it out without reading it."""
_LAST_CHARACTER = "\U0010ffff"
_LARGEST = (1 << 62) - 1
_KIND_LENGTH = 60


def condition(query: IssueQuery, *, by_time: bool = True) -> tuple[str, list[Any]]:
    """A query as SQL.

    Args:
        query: Any.
        by_time: Whether an index by time may answer it.

    Returns:
        The WHERE clause, empty for a query without conditions, and its values.
    """
    terms: list[tuple[str, list[Any]]] = list(_kind_terms(query, "" if by_time else "+"))
    if query.since_wall_ns is not None:
        terms.append(("began_wall_ns >= ?", [bounded(query.since_wall_ns)]))
    if query.until_wall_ns is not None:
        terms.append(("began_wall_ns < ?", [bounded(query.until_wall_ns)]))
    if query.causes:
        marks = ", ".join("?" * len(query.causes))
        terms.append((f"cause IN ({marks})", sorted(cause.value for cause in query.causes)))
    if query.session is not None:
        terms.append(("session >= ? AND session < ?", prefix_range(query.session)))
    if query.program is not None:
        terms.append(("session IN (SELECT id FROM sessions WHERE name = ?)", [storable(query.program)]))
    if query.fingerprint is not None:
        terms.append(("fingerprint = ?", [storable(query.fingerprint)]))
    if query.scene is not None:
        terms.append(("scene = ?", [storable(query.scene)]))
    if query.in_app is not None:
        terms.append(("in_app = ?", [int(query.in_app)]))
    # instr, not LIKE: no wildcards to escape, and both sides were folded by the same rules.
    terms += [("instr(search, ?) > 0", [storable(word.casefold())]) for word in query.words]
    clause = " AND ".join(term for term, _ in terms)
    return (f"WHERE {clause}" if clause else ""), [value for _, values in terms for value in values]


def _kind_terms(query: IssueQuery, sign: str) -> Iterator[tuple[str, list[Any]]]:
    # Stalls are named in the statement: an index of stalls alone, or of all others, is found by that. The
    # sign keeps it out of sums, which it would lead to each row by itself.
    if query.kind == IssueKind.STALL:
        yield f"{sign}kind = 'stall'", []
    elif query.kind is not None:
        yield "kind IN (?, ?)", [query.kind.value, query.kind.value + QUIET]
    if query.other_than == IssueKind.STALL:
        yield f"{sign}kind <> 'stall'", []
    elif query.other_than is not None:
        yield "kind NOT IN (?, ?)", [query.other_than.value, query.other_than.value + QUIET]


def readable_condition(query: IssueQuery, *, by_time: bool = True) -> tuple[str, list[Any]]:
    """As `condition`, without the issues of kinds that nothing here can read."""
    clause, values = condition(query, by_time=by_time)
    if query.kind == IssueKind.STALL:
        return clause, values
    kinds = with_quiet(readable_kinds())
    return narrowed(clause, f"kind IN ({', '.join('?' * len(kinds))})"), [*values, *kinds]


def with_quiet(kinds: Iterable[str]) -> list[str]:
    """What the column `kind` has for issues of these."""
    return [name for kind in kinds for name in (kind, kind + QUIET)]


def summed_condition(query: IssueQuery) -> tuple[str, list[Any]]:
    """As `readable_condition`, for sums: what is not news is kept for its course and is not a bug, so it
    counts only where its kind, or this very group, is asked for."""
    clause, values = readable_condition(query, by_time=query.kind != IssueKind.STALL)
    if query.kind is None and query.fingerprint is None:
        clause = narrowed(clause, f"instr(kind, '{QUIET}') = 0")
    return clause, values


def session_condition(query: IssueQuery) -> tuple[str, list[Any]]:
    """The WHERE clause of the program's sessions that ran in the query's time, and its values."""
    latest = bounded(1 << 63)
    until = latest if query.until_wall_ns is None else bounded(query.until_wall_ns)
    since = -latest if query.since_wall_ns is None else bounded(query.since_wall_ns)
    clause = "WHERE id >= ? AND id < ? AND started_wall_ns < ? AND coalesce(ended_wall_ns, ?) >= ?"
    values = [*prefix_range(query.session or ""), until, latest, since]
    if query.program is None:
        return clause, values
    return narrowed(clause, "name = ?"), [*values, storable(query.program)]


def narrowed(clause: str, term: str) -> str:
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


def marks(
    connection: sqlite3.Connection, query: IssueQuery, fingerprints: Sequence[str] | None
) -> list[IssueMark]:
    """The issues that the query finds, of these groups, in short."""
    columns = "fingerprint, session, thread, loop, began_wall_ns, duration_ns"
    clause, values = summed_condition(query)
    if fingerprints is None:
        rows = connection.execute(f"SELECT {columns} FROM issues {clause}", values)
        return [IssueMark._make(row) for row in rows]
    clause = narrowed(clause, "fingerprint = ?")
    statement = f"SELECT {columns} FROM issues {clause}"
    return [
        IssueMark._make(row)
        for fingerprint in fingerprints
        for row in connection.execute(statement, [*values, storable(fingerprint)])
    ]


def unreadable(connection: sqlite3.Connection) -> list[str]:
    """A line for people about each kind that nothing here can read, with the number of its issues."""
    known = with_quiet(readable_kinds())
    statement = f"""SELECT replace(kind, '{QUIET}', ''), count(*) FROM issues
                    WHERE kind <> 'stall' AND kind NOT IN ({", ".join("?" * len(known))})
                    GROUP BY 1 ORDER BY 1"""
    return [_not_shown(kind, number) for kind, number in connection.execute(statement, known)]


def _not_shown(kind: str, number: int) -> str:
    verb = "is" if number == 1 else "are"
    gone = REGISTRY.find(KINDS, kind) is None
    reason = "no installed plugin reads it" if gone else "its plugin cannot be loaded"
    shown = printable(kind, _KIND_LENGTH)
    return f"{count_of(number, 'issue')} of kind {shown} {verb} not shown: {reason}"
