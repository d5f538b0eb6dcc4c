"""Stores of older formats that may not be written: read as they are, and what they lack is said."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.store.samples import BEGAN, KILLED, SESSION, STALL, S

from loopcanary.model import Cause
from loopcanary.model.search import Remark, StallQuery
from loopcanary.store import Store, StoreError, database, schema, search

ALL = StallQuery()


def insert(connection: sqlite3.Connection, table: str, columns: dict[str, Any]) -> int:
    """Puts those of the columns that the table has."""
    there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    kept = {name: value for name, value in columns.items() if name in there}
    marks = ", ".join(f":{name}" for name in kept)
    cursor = connection.execute(f"INSERT INTO {table} ({', '.join(kept)}) VALUES ({marks})", kept)
    return cursor.lastrowid or 0


def old_store(path: Path, version: int) -> None:
    """One session and two stalls, as a loopcanary of that time wrote them."""
    path.parent.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    for statements in schema.MIGRATIONS[:version]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {version}")
    insert(connection, "sessions", search.session_columns(SESSION))
    for one in (STALL, KILLED):
        row = insert(connection, "stalls", search.stall_columns(one))
        insert(connection, "payloads", {"row": row, "payload": search.stall_payload(one)})
    connection.close()


@pytest.fixture
def unwritable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a store may be written by this user."""
    monkeypatch.setattr(database, "is_writable", lambda path: False)  # noqa: ARG005


@pytest.mark.usefixtures("unwritable")
@pytest.mark.parametrize("version", range(1, schema.VERSION))
def test_it_is_read_and_says_what_it_lacks(
    folder: Path, make_store: Callable[..., Store], version: int
) -> None:
    old_store(folder / database.FILE_NAME, version)
    before = (folder / database.FILE_NAME).read_bytes()
    store = make_store()
    store.overlay([SESSION], [])
    assert [group.fingerprint for group in store.groups(ALL)] == ["1:dead", "1:f00d"]
    assert [sums.stalls for sums in store.group_sums(ALL)] == [1, 1]
    assert store.groups(StallQuery(causes=frozenset({Cause.LOCK})))[0].worst_id == KILLED.id
    assert store.stalls(ALL) == [KILLED, STALL]
    assert [one.id for one in store.sessions(ALL)] == ["s1"]
    assert [mark.killed for mark in store.session_marks(ALL)] == [True]
    assert len(store.marks(ALL)) == 2
    assert (
        sum(
            cell.stalls
            for cell in store.time_cells(ALL, "cause", begin_wall_ns=BEGAN, step_ns=100 * S, cells=2)
        )
        == 2
    )
    assert (store.issues(ALL), store.remarks(), store.issue_group_sums(ALL)) == ([], {}, [])
    assert store.scenes() == ([] if version < 4 else ["checkout"])
    with pytest.raises(StoreError, match="cannot be written"):
        store.remark("1:f00d", Remark(note="mine"))
    [notice] = store.notices
    assert f"older format ({version}, now {schema.VERSION})" in notice
    assert ("scenes" in notice) == (version < 4)
    assert (folder / database.FILE_NAME).read_bytes() == before


@pytest.mark.usefixtures("unwritable")
def test_an_empty_file_is_no_store(folder: Path, make_store: Callable[..., Store]) -> None:
    folder.mkdir()
    (folder / database.FILE_NAME).touch()
    with pytest.raises(StoreError, match="is no store"):
        make_store().open()
