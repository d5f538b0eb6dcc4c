"""A store that may not be written, and those of other layouts."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.building.stalls import SESSION, stall

from loopcanary.model.search import OTHERS, STALLS, Remark
from loopcanary.store import Store, StoreError
from loopcanary.store.sqlite import database, schema

KEPT = Path(__file__).parent / "kept" / "loopcanary.db.gz"


@pytest.fixture
def old(folder: Path) -> Path:
    folder.mkdir()
    path = folder / database.FILE_NAME
    path.write_bytes(gzip.decompress(KEPT.read_bytes()))
    return path


@pytest.fixture
def unwritable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a store may be written by this user."""
    monkeypatch.setattr(database, "is_writable", lambda path: False)  # noqa: ARG005


@pytest.mark.usefixtures("unwritable")
def test_one_that_cannot_be_written_is_read_in_full(old: Path, make_store: Callable[..., Store]) -> None:
    before = old.read_bytes()
    with closing(sqlite3.connect(old)) as opened:
        assert schema.is_ours(opened)
    store = make_store()
    store.overlay([SESSION], [stall(id="now")])
    assert store.reader.issue("now") is not None
    assert (store.reader.totals(STALLS).issues, store.reader.totals(OTHERS).issues) == (18, 7)
    assert {mark.loop for mark in store.reader.marks(OTHERS)} == {"pygame"}
    assert store.reader.remarks()["1:dead"] == Remark(ignored=True, note="known")
    assert old.read_bytes() == before


@pytest.mark.parametrize("version", [1, 5])
def test_a_layout_that_was_never_released_is_refused(
    old: Path, make_store: Callable[..., Store], version: int
) -> None:
    connection = sqlite3.connect(old)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with pytest.raises(StoreError, match=f"format {version}, which no loopcanary reads"):
        make_store().open()


@pytest.mark.usefixtures("unwritable")
def test_an_empty_file_is_no_store(folder: Path, make_store: Callable[..., Store]) -> None:
    folder.mkdir()
    (folder / database.FILE_NAME).touch()
    with pytest.raises(StoreError, match="is not a store"):
        make_store().open()
