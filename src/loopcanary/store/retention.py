"""What is removed so that a store stays small: by age, by number, by bytes."""

# ruff: noqa: S608 - statements are put together from this package's own literals; values are bound

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.late_dataclass import dataclass
from loopcanary.store.search import bounded

if TYPE_CHECKING:
    import sqlite3

    from loopcanary.store.sqlite.database import Database

_BATCH = 500
"""Issues deleted in one transaction: some milliseconds, so that writers hardly wait."""
_BATCHES_MAX = 40
"""A sweep is bounded; the next one goes on."""
_PARTS = ("kind = 'stall'", "kind <> 'stall'")
"""Stalls, and all other issues: many of one leave room for the other."""
_DAY_NS = 86_400 * 1_000_000_000
_CLOCK_SET_NS = 1_577_836_800 * 1_000_000_000
"""2020: a machine with an earlier time has not been told the time yet. What it stores has no age."""
OVER_AND_EMPTY = "end <> 'running' AND id NOT IN (SELECT session FROM main.issues)"
"""Sessions of which nothing is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much is kept; the settings of the same names in Config."""

    age_ns: int = 30 * _DAY_NS
    stalls: int = 100_000
    """The most stalls that are kept; as many issues of all other kinds are kept."""
    bytes: int = 1 << 30


def sweep(database: Database, retention: Retention, now_wall_ns: int) -> int:
    """Removes what retention does not keep, oldest first, a batch in each transaction.

    Returns:
        How many issues were removed.

    Raises:
        StoreError: The database fails.
    """
    issues = 0
    oldest_kept = database.read(lambda connection: _oldest_kept(connection, retention, now_wall_ns))
    for _ in range(_BATCHES_MAX):
        batch = database.write(lambda connection: _delete_batch(connection, retention, oldest_kept))
        issues += batch
        if not batch:
            break
    others = database.write(lambda connection: _delete_sessions(connection, retention.stalls, oldest_kept))
    others += database.write(lambda connection: _delete_traces(connection, oldest_kept))
    if issues or others:
        database.outside_transaction(give_back_space)
    return issues


def _oldest_kept(connection: sqlite3.Connection, retention: Retention, now_wall_ns: int) -> int:
    """Ages are measured from now, unless nothing was stored for longer than what is kept, up to a day ago:
    the clock may be wrong, and they are measured from the last issue before that."""
    oldest_kept = bounded(now_wall_ns - retention.age_ns)
    young, old = now_wall_ns, None
    for part in _PARTS:
        times = f"FROM main.issues WHERE {part} AND began_wall_ns"
        first = connection.execute(f"SELECT min(began_wall_ns) {times} >= ?", [oldest_kept]).fetchone()[0]
        last = connection.execute(f"SELECT max(began_wall_ns) {times} < ?", [oldest_kept]).fetchone()[0]
        young = min(young, now_wall_ns if first is None else first)
        old = max((one for one in (old, last) if one is not None), default=None)
    if old is None or young - old <= retention.age_ns or now_wall_ns - young >= _DAY_NS:
        return oldest_kept
    return bounded(old - retention.age_ns)


def give_back_space(connection: sqlite3.Connection) -> None:
    """Shrinks the file by its free pages, and the log beside it, as far as no reader needs them now."""
    # The pragma frees a page each time it is stepped: executescript runs it to its end.
    connection.executescript("PRAGMA incremental_vacuum")
    # The log keeps the length that it had at its longest for as long as a program has the store open.
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _delete_batch(connection: sqlite3.Connection, retention: Retention, oldest_kept: int) -> int:
    """The next few that are too many, too old, or, oldest first, too large."""
    if excess := _excess_bytes(connection, retention):
        latest = _latest_of_oldest(connection, excess)
        return sum(
            _delete_oldest(connection, excess, f"{part} AND began_wall_ns <= {latest}") for part in _PARTS
        )
    deleted = 0
    for part in _PARTS:
        too_many = _count(connection, part) - retention.stalls
        if too_many > 0:
            deleted += _delete_oldest(connection, min(too_many, _BATCH), part)
        else:
            aged = f"{part} AND began_wall_ns BETWEEN {_CLOCK_SET_NS} AND {oldest_kept - 1}"
            deleted += _delete_oldest(connection, _BATCH, aged)
    return deleted


def _count(connection: sqlite3.Connection, part: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM main.issues WHERE {part}").fetchone()[0])


def _excess_bytes(connection: sqlite3.Connection, retention: Retention) -> int:
    """How many issues to delete, so that the rest takes no more than it may: a guess, since they differ in
    size, that the next batch corrects."""
    used = used_bytes(connection)
    if used <= retention.bytes:
        return 0
    count = sum(_count(connection, part) for part in _PARTS)
    return min(count, count * (used - retention.bytes) // used + 1, _BATCH)


def _latest_of_oldest(connection: sqlite3.Connection, number: int) -> int:
    """When the last one of so many of the oldest issues began."""
    began = [
        row[0]
        for part in _PARTS
        for row in connection.execute(
            f"SELECT began_wall_ns FROM main.issues WHERE {part} ORDER BY began_wall_ns LIMIT ?", [number]
        )
    ]
    return int(sorted(began)[number - 1])


def _delete_oldest(connection: sqlite3.Connection, number: int, part: str) -> int:
    chosen = f"SELECT row FROM main.issues WHERE {part} ORDER BY began_wall_ns LIMIT ?"
    return connection.execute(f"DELETE FROM main.issues WHERE row IN ({chosen})", [number]).rowcount


def used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file that hold something."""
    pages, free, page_bytes = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * page_bytes


def _delete_traces(connection: sqlite3.Connection, oldest_kept: int) -> int:
    """Deletes figures of sessions that were never stored."""
    statement = (
        "DELETE FROM main.traces WHERE stored_wall_ns < ? AND session NOT IN (SELECT id FROM main.sessions)"
    )
    return connection.execute(statement, [oldest_kept]).rowcount


def _delete_sessions(connection: sqlite3.Connection, most: int, oldest_kept: int) -> int:
    by_age = connection.execute(
        f"DELETE FROM main.sessions WHERE started_wall_ns < ? AND {OVER_AND_EMPTY}", [oldest_kept]
    )
    by_number = connection.execute(
        f"""DELETE FROM main.sessions WHERE {OVER_AND_EMPTY} AND id IN (
                SELECT id FROM main.sessions ORDER BY started_wall_ns DESC LIMIT -1 OFFSET ?)""",
        [most],
    )
    return by_age.rowcount + by_number.rowcount
