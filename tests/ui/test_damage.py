"""Stores that are damaged, of a newer format, not to be opened: told on the pages, and the others' go on."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.building.stalls import SESSION, STALL, stall
from tests.ui.conftest import HOST, client_of, let_in

from loopcanary.cli.commands.ui import _look, _tell_at_start
from loopcanary.store import Retention, Store, StoreError
from loopcanary.store.sqlite import schema as store_schema
from loopcanary.ui.live import Now, Watch

PAGES = ("/", "/groups", "/changes", "/sessions", "/frames", "/groups?kind=other")
OTHER = stall(id="o1-1", session="o1", fingerprint="1:0the", title="read() in other (other.py:3)")


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "other", retention=Retention(age_ns=1 << 62))
    made.put([], [OTHER])
    yield made
    made.close()


@pytest.fixture
def watch(filled: Store) -> Watch:
    return watch_of(filled)


def watch_of(*stores: Store) -> Watch:
    """As `loopcanary ui` watches them."""
    return Watch(stores, _look, (StoreError,))


def browser(watch: Watch) -> TestClient:
    return let_in(client_of(watch=watch))


def notices(text: str) -> str:
    return text.partition('<div id="notices" data-refresh>')[2].partition("</div>")[0]


def say_format(store: Store, version: int) -> None:
    store.close()
    with sqlite3.connect(store.path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def spoil(store: Store) -> None:
    """As a disk does: while it is open elsewhere."""
    with store.path.open("r+b") as file:
        file.write(b"this is no database" * 1_000)


def asides(store: Store) -> list[str]:
    return [one.name for one in store.maintenance.set_aside()]


# ---- one store ------------------------------------------------------------------------------------------


def test_the_first_page_that_meets_damage_shows_it(filled: Store, watch: Watch):
    client = browser(watch)
    assert notices(client.get("/groups").text) == ""
    filled.close()
    spoil(filled)
    text = client.get("/groups").text
    [name] = asides(filled)
    told = notices(text)
    assert str(filled.path) in told
    assert f"set aside as {name}" in told
    assert f"<code>sqlite3 {name} .recover</code>" in told
    assert "delete it" in told
    # Once, and again with each page.
    for path in PAGES:
        assert notices(client.get(path).text).count(name) == 2, path


def test_a_newer_format_is_a_page_that_says_what_to_do(filled: Store, watch: Watch):
    client = browser(watch)
    say_format(filled, store_schema.VERSION + 1)
    watch.again()
    for path in PAGES:
        answer = client.get(path)
        assert answer.status_code == 503, path
        assert answer.text.count("written by a newer loopcanary") == 1
        assert "upgrade loopcanary" in notices(answer.text)
        assert str(filled.path) in notices(answer.text)
    say_format(filled, store_schema.VERSION)
    watch.again()
    answer = client.get("/groups")
    assert answer.status_code == 200
    assert notices(answer.text) == ""
    assert STALL.title in answer.text


def test_what_is_no_file_is_named_with_a_next_step(tmp_path: Path):
    store = Store(tmp_path / "store")
    store.path.mkdir(parents=True)
    answer = browser(watch_of(store)).get("/")
    assert answer.status_code == 503
    assert "cannot be opened: check that it is a file" in notices(answer.text)


def test_an_unreadable_stall_is_named_with_a_next_step(filled: Store, watch: Watch):
    filled.close()
    with sqlite3.connect(filled.path) as connection:
        connection.execute("UPDATE payloads SET payload = '{}'")
    connection.close()
    answer = browser(watch).get("/groups")
    assert answer.status_code == 200
    told = notices(answer.text)
    assert "a newer loopcanary wrote" in told
    assert "loopcanary clean --id" in told


def test_set_aside_damage_is_shown_for_a_day(filled: Store, watch: Watch):
    def put(name: str) -> None:
        (filled.folder / name).write_bytes(bytes(4096))

    now = time.time()
    recent = f"loopcanary.db.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now - 3_600))}"
    old = "loopcanary.db.damaged-20250101T000000Z-2"
    for name in (recent, f"{recent}-wal", old, "loopcanary.db.damaged-20259999T000000Z", "loopcanary.db.bak"):
        put(name)
    assert asides(filled) == [recent, old]
    client = browser(watch)
    told = notices(client.get("/").text)
    assert told.count(recent) == 1
    assert "its 4.00 KiB are not in these pages" in told
    assert old not in told
    doctor = client.get("/doctor").text
    assert recent in doctor
    assert old in doctor


def test_open_pages_learn_of_trouble():
    assert Now().version != Now(trouble=("the disk is full",)).version


# ---- several --------------------------------------------------------------------------------------------


def test_an_unreadable_store_does_not_hide_others(filled: Store, other: Store):
    say_format(other, store_schema.VERSION + 1)
    client = browser(watch_of(filled, other))
    for path in (
        *PAGES,
        f"/group?f={STALL.fingerprint}",
        f"/issue?id={STALL.id}",
        f"/session?id={SESSION.id}",
    ):
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert str(other.path) in notices(answer.text), path
        assert str(filled.path) not in notices(answer.text), path
    assert STALL.title in client.get("/groups").text
    doctor = client.get("/doctor").text
    assert "cannot be read" in doctor
    assert f"{filled.folder}</code> 3 stalls" in doctor


def test_each_unreadable_store_is_named(filled: Store, other: Store):
    for store in (filled, other):
        say_format(store, store_schema.VERSION + 1)
    answer = browser(watch_of(filled, other)).get("/groups")
    assert answer.status_code == 503
    assert "The stores cannot be read" in answer.text
    assert str(filled.path) in notices(answer.text)
    assert str(other.path) in notices(answer.text)


def test_damage_of_one_store_leaves_the_others(filled: Store, other: Store):
    watch = watch_of(filled, other)
    client = browser(watch)
    assert OTHER.title in client.get("/groups").text
    other.close()
    spoil(other)
    text = client.get("/groups").text
    assert asides(other)[0] in notices(text)
    assert OTHER.title not in text
    assert STALL.title in text


def test_damage_that_only_a_page_meets_is_shown_too(filled: Store, other: Store):
    other.close()
    with sqlite3.connect(other.path) as connection:
        connection.execute("UPDATE payloads SET payload = '{}'")
    connection.close()
    answer = browser(watch_of(filled, other)).get("/groups")
    assert answer.status_code == 200
    assert STALL.title in answer.text
    assert "1 record cannot be read and is left out" in notices(answer.text)


def test_a_change_reaches_every_writable_store(filled: Store, other: Store):
    say_format(other, store_schema.VERSION + 1)
    watch = watch_of(other, filled)
    client = browser(watch)
    asked = {"f": STALL.fingerprint, "note": "TICKET-7"}
    answer = client.post("/group/remark", data=asked, headers={"Origin": f"http://{HOST}"})
    assert answer.status_code == 503
    assert "One of the stores was not changed" in answer.text
    assert str(other.path) in answer.text
    assert filled.reader.remarks()[STALL.fingerprint].note == "TICKET-7"


# ---- at the start ---------------------------------------------------------------------------------------


def test_trouble_at_the_start_is_in_terminal_and_pages(
    filled: Store, other: Store, capsys: pytest.CaptureFixture[str]
):
    filled.close()
    spoil(filled)
    say_format(other, store_schema.VERSION + 1)
    for store in (filled, other):
        _tell_at_start(store)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "set aside" in lines[0]
    assert "newer loopcanary" in lines[1]
    told = notices(browser(watch_of(filled, other)).get("/").text)
    assert asides(filled)[0] in told
    assert "newer loopcanary" in told
