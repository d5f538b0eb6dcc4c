"""What people say of bugs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model.search import Remark
from loopcanary.store.search import storable

if TYPE_CHECKING:
    import sqlite3

_NOTE_MAX = 10_000


def read(connection: sqlite3.Connection) -> dict[str, Remark]:
    """All remarks, by fingerprint."""
    rows = connection.execute("SELECT fingerprint, ignored, note FROM remarks")
    return {fingerprint: Remark(ignored=bool(ignored), note=note) for fingerprint, ignored, note in rows}


def write(connection: sqlite3.Connection, fingerprint: str, remark: Remark, now_wall_ns: int) -> None:
    """Puts it in the place of what was said before; one that says nothing is removed."""
    if remark == Remark():
        connection.execute("DELETE FROM main.remarks WHERE fingerprint = ?", [storable(fingerprint)])
        return
    connection.execute(
        "INSERT OR REPLACE INTO main.remarks VALUES (?, ?, ?, ?)", _row(fingerprint, remark, now_wall_ns)
    )


def add(connection: sqlite3.Connection, fingerprint: str, remark: Remark, now_wall_ns: int) -> None:
    """Keeps it, unless something was said before."""
    connection.execute(
        "INSERT OR IGNORE INTO main.remarks VALUES (?, ?, ?, ?)", _row(fingerprint, remark, now_wall_ns)
    )


def _row(fingerprint: str, remark: Remark, now_wall_ns: int) -> list[str | int]:
    return [storable(fingerprint), int(remark.ignored), storable(remark.note[:_NOTE_MAX]), now_wall_ns]
