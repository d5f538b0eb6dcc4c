"""What is removed so that a store stays small: by age, by number, by bytes."""

# ruff: noqa: S608 - statements are put together from this package's own literals; values are bound

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loopcanary.store.search import bounded

if TYPE_CHECKING:
    import sqlite3

    from loopcanary.store.database import Database

_BATCH = 500
"""Stalls deleted in one transaction: some milliseconds, so that writers hardly wait."""
_BATCHES_MAX = 40
"""A sweep is bounded; the next one goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much is kept; the settings of the same names in Config."""

    age_ns: int = 30 * 86_400 * 1_000_000_000
    stalls: int = 100_000
    bytes: int = 1 << 30


def sweep(database: Database, retention: Retention, now_wall_ns: int) -> int:
    """Removes what retention does not keep, oldest first, and gives the number of stalls. StoreError."""
    removed = 0
    oldest_kept = bounded(now_wall_ns - retention.age_ns)
    for _ in range(_BATCHES_MAX):
        batch = database.write(lambda connection: _delete_batch(connection, retention, oldest_kept))
        removed += batch
        if batch == 0:
            break
    database.write(lambda connection: _delete_sessions(connection, retention.stalls, oldest_kept))
    database.write(lambda connection: _delete_others(connection, retention.stalls, oldest_kept))
    if removed:
        database.outside_transaction(give_back_space)
    return removed


def give_back_space(connection: sqlite3.Connection) -> None:
    """Shrinks the file by its free pages."""
    # The pragma frees a page each time it is stepped: executescript runs it to its end.
    connection.executescript("PRAGMA incremental_vacuum")


def _delete_batch(connection: sqlite3.Connection, retention: Retention, oldest_kept: int) -> int:
    excess = _excess(connection, retention)
    if excess:
        chosen = "SELECT row FROM main.stalls ORDER BY began_wall_ns LIMIT ?"
        values = [min(excess, _BATCH)]
    else:
        chosen = "SELECT row FROM main.stalls WHERE began_wall_ns < ? LIMIT ?"
        values = [oldest_kept, _BATCH]
    return connection.execute(f"DELETE FROM main.stalls WHERE row IN ({chosen})", values).rowcount


def _excess(connection: sqlite3.Connection, retention: Retention) -> int:
    count = int(connection.execute("SELECT count(*) FROM main.stalls").fetchone()[0])
    excess = max(count - retention.stalls, 0)
    used = used_bytes(connection)
    if used > retention.bytes and count:
        # Stalls differ in size, so this is a guess that the next batch corrects.
        excess = max(excess, min(count, count * (used - retention.bytes) // used + 1))
    return excess


def used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file that hold something."""
    pages, free, page_bytes = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * page_bytes


def _delete_others(connection: sqlite3.Connection, most: int, oldest_kept: int) -> None:
    """Issues that are no stalls, by age and number; traces of sessions that never came to be stored."""
    connection.execute("DELETE FROM main.issues WHERE began_wall_ns < ?", [oldest_kept])
    connection.execute(
        """DELETE FROM main.issues WHERE row IN
           (SELECT row FROM main.issues ORDER BY began_wall_ns DESC LIMIT -1 OFFSET ?)""",
        [most],
    )
    connection.execute(
        "DELETE FROM main.traces WHERE stored_wall_ns < ? AND session NOT IN (SELECT id FROM main.sessions)",
        [oldest_kept],
    )


def _delete_sessions(connection: sqlite3.Connection, most: int, oldest_kept: int) -> None:
    without_stalls = "end <> 'running' AND id NOT IN (SELECT session FROM main.stalls)"
    connection.execute(
        f"DELETE FROM main.sessions WHERE started_wall_ns < ? AND {without_stalls}", [oldest_kept]
    )
    connection.execute(
        f"""DELETE FROM main.sessions WHERE {without_stalls} AND id IN (
                SELECT id FROM main.sessions ORDER BY started_wall_ns DESC LIMIT -1 OFFSET ?)""",
        [most],
    )
