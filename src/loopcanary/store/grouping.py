"""Issues by bug, and by bug and time, as SQL."""

# ruff: noqa: S608 - statements are put together from this package's own literals; values are bound

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from loopcanary.model import Cause, Issue, Stall
from loopcanary.model.search import IssueGroup, IssueQuery, IssueTime, TimeCell, time_in_cells
from loopcanary.store.records import issue_of
from loopcanary.store.search import bounded, narrowed, storable, summed_condition

if TYPE_CHECKING:
    import sqlite3


class _Sums(NamedTuple):
    """A group, as far as its rows say."""

    fingerprint: str
    issues: int
    total_ns: int
    max_ns: int
    first_wall_ns: int
    last_wall_ns: int


_Found = tuple[int, int, int, str]
"""Duration, begin, row and cause of an issue."""


class _Picked(NamedTuple):
    """The values of a group that come from one of its issues."""

    p50_ns: int
    worst_id: str
    worst_row: int
    by_cause: list[tuple[int, int]]
    """For each cause in the group: the sum of durations, and the row of the longest issue."""


def groups(
    connection: sqlite3.Connection, query: IssueQuery, limit: int, fingerprints: Sequence[str] | None = None
) -> list[IssueGroup]:
    """Groups by total time, largest first."""
    if _is_by_index(query) and not _is_covered(connection):
        return _by_index(connection, query, limit, fingerprints)
    return _by_scan(connection, query, limit, fingerprints)


def _is_covered(connection: sqlite3.Connection) -> bool:
    """Whether stalls that go on lie over the stored ones."""
    return connection.execute("SELECT 1 FROM temp.sqlite_master WHERE name = 'issues'").fetchone() is not None


def _is_by_index(query: IssueQuery) -> bool:
    """Whether the index of groups answers it; for words, texts are read."""
    return not query.words


def _is_filtered(query: IssueQuery) -> bool:
    """Whether it asks for more than kind, fingerprint and time."""
    return query != IssueQuery(
        since_wall_ns=query.since_wall_ns,
        until_wall_ns=query.until_wall_ns,
        fingerprint=query.fingerprint,
        kind=query.kind,
        other_than=query.other_than,
    )


def _of_these(query: IssueQuery, fingerprints: Sequence[str] | None) -> tuple[str, list[Any]]:
    clause, values = summed_condition(query)
    if fingerprints is None:
        return clause, values
    clause = narrowed(clause, f"fingerprint IN ({', '.join('?' * len(fingerprints))})")
    return clause, [*values, *map(storable, fingerprints)]


def _by_index(
    connection: sqlite3.Connection, query: IssueQuery, limit: int, fingerprints: Sequence[str] | None
) -> list[IssueGroup]:
    clause, values = _of_these(query, fingerprints)
    # GROUP BY of a column whose order an index has: asked for by name, as a filter's own index leads to rows.
    rows = connection.execute(
        f"""SELECT fingerprint, count(*), CAST(total(duration_ns) AS INTEGER), max(duration_ns),
                   min(began_wall_ns), max(began_wall_ns)
            FROM issues INDEXED BY issues_by_group {clause}
            GROUP BY fingerprint ORDER BY max(cause = 'crash') DESC, 3 DESC, 1 LIMIT ?""",
        [*values, limit or -1],
    ).fetchall()
    found = [_Sums._make(row) for row in rows]
    clause, values = summed_condition(query)
    pick = _picked_of_filtered if _is_filtered(query) else _picked
    return [_group(connection, one, pick(connection, one, clause, values)) for one in found]


def _picked(connection: sqlite3.Connection, sums: _Sums, clause: str, values: list[Any]) -> _Picked:
    clause, values = narrowed(clause, "fingerprint = ?"), [*values, sums.fingerprint]

    def pick(columns: str, order: str, offset: int = 0) -> Any:
        statement = f"SELECT {columns} FROM issues {clause} ORDER BY {order} LIMIT 1 OFFSET {offset}"
        return connection.execute(statement, values).fetchone()

    worst_id, worst_row = pick("id, row", "duration_ns DESC, began_wall_ns DESC")
    statement = f"""SELECT cause, CAST(total(duration_ns) AS INTEGER), max(duration_ns) FROM issues
                    INDEXED BY issues_by_group {clause} GROUP BY cause ORDER BY cause"""
    causes = connection.execute(statement, values).fetchall()
    by_cause = [(sums.total_ns, worst_row)]
    if len(causes) > 1:
        longest = f"""SELECT row FROM issues {clause} AND cause = ? AND duration_ns = ?
                      ORDER BY began_wall_ns DESC LIMIT 1"""
        by_cause = [
            (total_ns, connection.execute(longest, [*values, cause, max_ns]).fetchone()[0])
            for cause, total_ns, max_ns in causes
        ]
    return _Picked(
        p50_ns=pick("duration_ns", "duration_ns", (sums.issues - 1) // 2)[0],
        worst_id=worst_id,
        worst_row=worst_row,
        by_cause=by_cause,
    )


def _picked_of_filtered(
    connection: sqlite3.Connection, sums: _Sums, clause: str, values: list[Any]
) -> _Picked:
    """Reads the group's part of the index once: the index by duration does not know the filters."""
    clause = narrowed(clause, "fingerprint = ?")
    columns = "duration_ns, began_wall_ns, row, cause"
    statement = f"SELECT {columns} FROM issues INDEXED BY issues_by_group {clause}"
    return _picked_of(connection, connection.execute(statement, [*values, sums.fingerprint]).fetchall())


def _by_scan(
    connection: sqlite3.Connection, query: IssueQuery, limit: int, fingerprints: Sequence[str] | None
) -> list[IssueGroup]:
    """Reads the rows once: picking each group's issues by their own statements would search all texts again
    and again."""
    clause, values = _of_these(query, fingerprints)
    found: dict[str, list[_Found]] = defaultdict(list)
    statement = f"SELECT fingerprint, duration_ns, began_wall_ns, row, cause FROM issues {clause}"
    for fingerprint, *issue in connection.execute(statement, values):
        found[fingerprint].append(tuple(issue))
    crashes = {name for name, stalls in found.items() if any(stall[-1] == "crash" for stall in stalls)}
    sums = sorted(
        (_summed(fingerprint, stalls) for fingerprint, stalls in found.items()),
        key=lambda one: (one.fingerprint not in crashes, -one.total_ns, one.fingerprint),
    )
    return [
        _group(connection, one, _picked_of(connection, found[one.fingerprint]))
        for one in sums[: limit or None]
    ]


def _picked_of(connection: sqlite3.Connection, found: list[_Found]) -> _Picked:
    """What a list shows of all issues of a group."""
    issues = sorted(found)
    worst_row = issues[-1][2]
    by_cause: dict[str, tuple[int, int]] = {}
    for duration_ns, _, row, cause in issues:
        by_cause[cause] = (by_cause.get(cause, (0, 0))[0] + duration_ns, row)
    worst_id = connection.execute("SELECT id FROM issues WHERE row = ?", [worst_row]).fetchone()[0]
    return _Picked(
        p50_ns=issues[(len(issues) - 1) // 2][0],
        worst_id=worst_id,
        worst_row=worst_row,
        by_cause=[by_cause[cause] for cause in sorted(by_cause)],
    )


def _summed(fingerprint: str, issues: Sequence[_Found]) -> _Sums:
    durations, moments = [issue[0] for issue in issues], [issue[1] for issue in issues]
    return _Sums(fingerprint, len(issues), sum(durations), max(durations), min(moments), max(moments))


def _group(connection: sqlite3.Connection, sums: _Sums, picked: _Picked) -> IssueGroup:
    named = _named(connection, picked)
    # The host strikes any code: one place says nothing of the group.
    is_anywhere = named.cause is Cause.HOST and sums.issues > 1
    return IssueGroup(
        fingerprint=sums.fingerprint,
        kind=named.kind,
        title=named.title,
        cause=named.cause,
        count=sums.issues,
        total_ns=sums.total_ns,
        p50_ns=picked.p50_ns,
        max_ns=sums.max_ns,
        first_wall_ns=sums.first_wall_ns,
        last_wall_ns=sums.last_wall_ns,
        culprit=None if is_anywhere else named.culprit,
        worst_id=picked.worst_id,
        holder=named.blamed_holder,
        advice=named.advice,
    )


def _named(connection: sqlite3.Connection, picked: _Picked) -> Issue:
    """The issue that the group is named by: the longest; of stalls with several causes the longest of the one
    with most time, each weighed by how sure its longest is."""
    if len(picked.by_cause) == 1:
        return _issue(connection, picked.worst_row)
    found = [(total_ns, _issue(connection, row)) for total_ns, row in picked.by_cause]
    stalls = [(total_ns, issue) for total_ns, issue in found if isinstance(issue, Stall)]
    if len(stalls) < len(found):
        return _issue(connection, picked.worst_row)
    return max(stalls, key=lambda one: (one[0] * one[1].confidence, one[0]))[1]


def _issue(connection: sqlite3.Connection, row: int) -> Issue:
    found = connection.execute("SELECT payload FROM payloads WHERE row = ?", [row]).fetchone()
    return issue_of("" if found is None else found[0], row)


def issue_times(
    connection: sqlite3.Connection, query: IssueQuery, sessions: Sequence[str] | None
) -> list[IssueTime]:
    """When each issue was, and how long, in no order; `sessions`: of these only."""
    clause, values = summed_condition(query)
    if sessions is not None:
        clause = narrowed(clause, f"session IN ({', '.join('?' * len(sessions))})")
        values = [*values, *map(storable, sessions)]
    # The index has all that is asked for; one by session would lead to each row by itself.
    index = "INDEXED BY issues_by_group" if _is_by_index(query) and not _is_covered(connection) else ""
    statement = f"SELECT fingerprint, session, began_wall_ns, duration_ns FROM issues {index} {clause}"
    return connection.execute(statement, values).fetchall()


def time_cells(
    connection: sqlite3.Connection,
    query: IssueQuery,
    key: Literal["fingerprint", "cause"],
    *,
    begin_wall_ns: int,
    step_ns: int,
    cells: int,
    keys: Sequence[str] | None,
) -> list[TimeCell]:
    """Issues by key and by span of wall time: each counted in the span that it began in, and its time in all
    spans that it lasted in."""
    spans = _Spans(bounded(begin_wall_ns), max(step_ns, 1), cells)
    if key == "fingerprint" and keys is not None and _is_by_index(query) and not _is_covered(connection):
        return list(_cells_by_index(connection, query, keys, spans))
    return list(_cells_by_scan(connection, query, key, keys, spans))


class _Spans(NamedTuple):
    """Equal spans of wall time."""

    begin_wall_ns: int
    step_ns: int
    cells: int

    def edge(self, cell: int) -> int:
        """Begin of the span with this number, in ns since 1970."""
        return bounded(self.begin_wall_ns + cell * self.step_ns)

    def cut(self, key: str, began_ns: int, duration_ns: int) -> Iterator[TimeCell]:
        """One issue, in all spans that it lasted in."""
        issues = 1
        for cell, length_ns in time_in_cells((began_ns, began_ns + duration_ns), *self):
            yield TimeCell(key, cell, issues, length_ns)
            issues = 0


def _cells_by_scan(
    connection: sqlite3.Connection,
    query: IssueQuery,
    key: Literal["fingerprint", "cause"],
    keys: Sequence[str] | None,
    spans: _Spans,
) -> Iterator[TimeCell]:
    clause, values = summed_condition(query)
    # The sign keeps the index by time out: it would lead to every row.
    clause = narrowed(clause, "+began_wall_ns >= ? AND +began_wall_ns < ?")
    begin, step = spans.begin_wall_ns, spans.step_ns
    values = [begin, step, begin, step, step, *values, begin, spans.edge(spans.cells)]
    if keys is not None:
        clause = narrowed(clause, f"{key} IN ({', '.join('?' * len(keys))})")
        values += map(storable, keys)
    # What lasts beyond its span is a group of its own, to be cut.
    rows = connection.execute(
        f"""SELECT {key}, (began_wall_ns - ?) / ?, count(*), CAST(total(duration_ns) AS INTEGER),
                   max(began_wall_ns), (began_wall_ns - ?) % ? + duration_ns > ? AS lasts
            FROM issues {clause} GROUP BY +{key}, 2, CASE WHEN lasts THEN row END""",
        values,
    )
    for name, cell, issues, total_ns, began_ns, lasts in rows:
        if lasts:
            yield from spans.cut(name, began_ns, total_ns)
        else:
            yield TimeCell(name, cell, issues, total_ns)


def _cells_by_index(
    connection: sqlite3.Connection, query: IssueQuery, fingerprints: Sequence[str], spans: _Spans
) -> Iterator[TimeCell]:
    """A range of the index each: a GROUP BY would sort every issue first."""
    clause, values = summed_condition(query)
    clause = narrowed(clause, "fingerprint = ? AND began_wall_ns >= ? AND began_wall_ns < ?")
    statement = f"FROM issues INDEXED BY issues_by_group {clause}"
    sums = (
        f"SELECT count(*), CAST(total(duration_ns) AS INTEGER), max(began_wall_ns + duration_ns) {statement}"
    )
    each = f"SELECT began_wall_ns, duration_ns {statement}"
    for fingerprint in fingerprints:
        for cell in range(spans.cells):
            low, high = spans.edge(cell), spans.edge(cell + 1)
            asked = [*values, fingerprint, low, high]
            count, total_ns, end = connection.execute(sums, asked).fetchone()
            if count and end > high:
                for began_ns, duration_ns in connection.execute(each, asked):
                    yield from spans.cut(fingerprint, began_ns, duration_ns)
            elif count:
                yield TimeCell(fingerprint, cell, count, total_ns)
