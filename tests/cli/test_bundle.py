"""loopcanary bundle, loopcanary import."""

from __future__ import annotations

import json
import os
import sqlite3
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.building.issues import JANK
from tests.building.stalls import BEGAN, KILLED, SESSION, STALL, S
from tests.bundles.samples import bundled

from loopcanary.cli import main
from loopcanary.model import Session, SessionEnd, Stall, StallState
from loopcanary.model.search import OTHERS, STALLS, IssueQuery, Remark
from loopcanary.store import Retention, Store

WORKER = replace(STALL, id="s1-3", thread="worker", loop="thread", began_wall_ns=BEGAN + 120 * S)
FOREVER = Retention(age_ns=1 << 62)
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def filled(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("LOOPCANARY_RETENTION", "40000d")
    store.put([SESSION], [KILLED, WORKER, STALL])
    store.put_issue(JANK)
    store.remark(STALL.fingerprint, Remark(note="known since May"))
    store.close()
    return store


def ids_in(bundle: str) -> list[str]:
    with zipfile.ZipFile(bundle) as archive:
        names = [name for name in archive.namelist() if name.startswith(("stalls-", "issues-"))]
        return [json.loads(line)["id"] for name in names for line in archive.read(name).splitlines()]


def everything(folder: Path) -> tuple[list[Stall], list[object], list[Session], dict[str, Remark]]:
    store = Store(folder, retention=FOREVER)
    try:
        return (
            list(store.reader.each(STALLS)),
            list(store.reader.issues(OTHERS)),
            [replace(one, imported_wall_ns=None) for one in store.reader.sessions(IssueQuery())],
            store.reader.remarks(),
        )
    finally:
        store.close()


@pytest.mark.usefixtures("filled")
def test_what_is_bundled_here_can_be_asked_for_there(place: Path, capsys: Captured) -> None:
    assert main(["bundle", "-o", "a.zip"]) == 0
    assert capsys.readouterr().out == "a.zip: 3 stalls and 1 other issue of 1 run.\n"
    assert (place / "a.zip").stat().st_mode & 0o777 == 0o600
    assert main(["import", "a.zip", "--store", "there"]) == 0
    assert "3 new stalls and 1 other issue, 1 run, 1 note on bugs." in capsys.readouterr().out
    stalls, issues, sessions, remarks = everything(place / ".loopcanary")
    assert everything(place / "there") == (
        stalls,
        issues,
        [replace(one, imported_from="a.zip") for one in sessions],
        remarks,
    )
    for command in (["report"], ["show", STALL.id], ["show", STALL.fingerprint], ["show", JANK.id]):
        assert main([*command, "--store", "there"]) == 0
    assert "from a.zip" in capsys.readouterr().out
    assert main(["export", "--format", "csv", "--store", "there"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert main(["report", "--format", "json", "--store", "there"]) == 0
    (session,) = json.loads(capsys.readouterr().out)["sessions"]
    assert session["imported_from"] == "a.zip"


@pytest.mark.usefixtures("filled")
def test_the_same_bundle_twice_adds_nothing(place: Path, capsys: Captured) -> None:
    main(["bundle", "-o", "a.zip"])
    main(["import", "a.zip", "a.zip", "--store", "there"])
    once = everything(place / "there")
    capsys.readouterr()
    assert main(["import", "a.zip", "--store", "there"]) == 0
    assert "0 new stalls, 0 runs; 3 stalls already in the store" in capsys.readouterr().out
    assert everything(place / "there") == once


@pytest.mark.usefixtures("filled")
def test_a_store_takes_its_own_bundle_as_known(place: Path) -> None:
    before = everything(place / ".loopcanary")
    main(["bundle", "-o", "a.zip", "--redact", "names"])
    assert main(["import", "a.zip"]) == 0
    assert everything(place / ".loopcanary") == before


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["--bug", "1:f"], ["s1-1", "s1-3"]),
        (["--bug", "jank"], [JANK.id]),
        (["--stall", "s1-2"], ["s1-2"]),
        (["--cause", "lock"], ["s1-2"]),
        (["--thread", "worker"], ["s1-3"]),
        (["--since", "2023-11-14T22:15:00Z"], ["s1-3"]),
    ],
)
def test_a_selection_bundles_what_it_names(asked: list[str], expected: list[str]) -> None:
    assert main(["bundle", "-o", "a.zip", *asked]) == 0
    assert ids_in("a.zip") == expected


@pytest.mark.usefixtures("filled")
def test_nothing_chosen_is_one_sentence_and_no_file(place: Path, capsys: Captured) -> None:
    assert main(["bundle", "-o", "a.zip", "--scene", "nowhere"]) == 1
    assert capsys.readouterr().err == "loopcanary: no stall matches, nothing was written\n"
    assert main(["bundle", "-o", "a.zip", "--bug", "9:none"]) == 1
    assert "no bug in the store begins with 9:none" in capsys.readouterr().err
    assert [path.name for path in place.iterdir()] == [".loopcanary"]


@pytest.mark.usefixtures("filled")
def test_the_order_of_stores_changes_no_bundle(place: Path) -> None:
    other = Store(place / "other", retention=FOREVER)
    late = replace(STALL, id="s2-1", session="s2", began_wall_ns=BEGAN - S)
    other.put([replace(SESSION, id="s2")], [late, STALL])
    other.close()
    assert main(["bundle", ".loopcanary", "other", "-o", "a.zip"]) == 0
    assert main(["bundle", "other", "--store", ".loopcanary", "-o", "b.zip"]) == 0
    assert sorted(ids_in("a.zip")) == ["s1-1", "s1-2", "s1-3", JANK.id, "s2-1"]
    assert (place / "a.zip").read_bytes() == (place / "b.zip").read_bytes()
    assert main(["bundle", "other", ".loopcanary", "--stall", "s2-1", "-o", "c.zip"]) == 0
    assert ids_in("c.zip") == ["s2-1"]


@pytest.mark.usefixtures("filled")
def test_an_ambiguous_start_is_an_error_in_any_store(place: Path, capsys: Captured) -> None:
    other = Store(place / "other", retention=FOREVER)
    other.put([], [replace(STALL, id="s1-9", fingerprint="1:f00e")])
    other.close()
    both = ["bundle", ".loopcanary", "other", "-o", "a.zip"]
    assert main([*both, "--stall", "s1-"]) == 2
    assert "s1- is ambiguous: s1-1, s1-2, s1-3, s1-9 begin so; write more" in capsys.readouterr().err
    assert main([*both, "--bug", "1:f00"]) == 2
    assert "1:f00 is ambiguous: 1:f00d, 1:f00e begin so; write more" in capsys.readouterr().err
    assert not (place / "a.zip").exists()
    assert main([*both, "--stall", "s1-9"]) == 0
    assert ids_in("a.zip") == ["s1-9"]


@pytest.mark.usefixtures("filled")
def test_what_is_redacted_is_the_same_in_every_bundle_of_a_user(place: Path, capsys: Captured) -> None:
    assert main(["bundle", "-o", "a.zip", "--redact", "paths,hosts"]) == 0
    assert main(["bundle", "-o", "b.zip", "--redact", "hosts", "--redact", "paths,hosts"]) == 0
    assert (place / "a.zip").read_bytes() == (place / "b.zip").read_bytes()
    (place / "key").write_text("a key that others have too")
    assert main(["bundle", "-o", "c.zip", "--redact", "all", "--redact-key", "key"]) == 0
    with zipfile.ZipFile("c.zip") as archive:
        assert not [name for name in archive.namelist() if b"orders" in archive.read(name)]
    capsys.readouterr()
    assert main(["bundle", "-o", "d.zip", "--redact", "secrets"]) == 2
    assert (
        "'secrets' cannot be replaced: use paths, names, source, args, hosts, fingerprints"
        in capsys.readouterr().err
    )


@pytest.mark.usefixtures("filled")
def test_one_bad_bundle_and_none_is_taken(place: Path, capsys: Captured) -> None:
    main(["bundle", "-o", "a.zip"])
    (place / "b.zip").write_bytes((place / "a.zip").read_bytes()[:-9])
    assert main(["import", "a.zip", "b.zip", "--store", "there"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("loopcanary: b.zip cannot be imported: ")
    assert not (place / "there").exists()


@pytest.mark.usefixtures("filled")
def test_lines_of_an_export_are_no_bundle(place: Path, capsys: Captured) -> None:
    main(["export", "--format", "jsonl", "-o", "a.jsonl"])
    assert main(["import", "a.jsonl"]) == 2
    assert "it is neither a zip nor a known text" in capsys.readouterr().err


def test_stalls_older_than_the_store_keeps_are_counted(
    filled: Store, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    main(["bundle", "-o", "a.zip"])
    monkeypatch.delenv("LOOPCANARY_RETENTION")
    assert main(["import", "a.zip", "--store", "there"]) == 0
    assert "3 stalls of these began before what this store keeps" in capsys.readouterr().err


def merged(
    folder: Path, bundles: list[tuple[list[Session], list[Stall]]], own: Callable[[Store], None]
) -> Store:
    """A store with something of its own into which bundles were taken, one after the other."""
    store = Store(folder / "there", retention=FOREVER)
    own(store)
    store.close()
    for number, (sessions, stalls) in enumerate(bundles):
        source = Store(folder / f"from-{number}", retention=FOREVER)
        source.put(sessions, stalls)
        source.close()
        assert main(["bundle", f"from-{number}", "-o", f"{number}.zip"]) == 0
        assert main(["import", f"{number}.zip", "--store", "there"]) == 0
    return store


def test_later_facts_are_taken_and_none_taken_back(place: Path) -> None:
    running = replace(SESSION, end=SessionEnd.RUNNING, ended_wall_ns=None)
    going_on = replace(STALL, state=StallState.ONGOING, duration_ns=S)
    early, late = ([running], [going_on]), ([SESSION], [STALL])
    store = merged(place, [early, late, early], lambda _: None)
    (session,) = store.reader.sessions(IssueQuery())
    assert (session.end, session.imported_from) == (SessionEnd.KILLED, "1.zip")
    assert store.reader.issue(STALL.id) == STALL
    store.close()


def test_what_a_store_saw_itself_it_knows_best(place: Path) -> None:
    mine = replace(SESSION, name="mine")

    def own(store: Store) -> None:
        store.put([mine], [replace(STALL, title="mine")])
        store.remark(STALL.fingerprint, Remark(note="mine"))

    store = merged(place, [([replace(SESSION, name="theirs")], [STALL, KILLED])], own)
    assert store.reader.sessions(IssueQuery(session="s1")) == [mine]
    assert [stall.title for stall in store.reader.each(STALLS)] == ["mine", KILLED.title]
    assert store.reader.remarks()[STALL.fingerprint].note == "mine"
    store.close()


def test_a_foreign_session_is_not_ended_but_cleaned(place: Path) -> None:
    """Its number may be of another process on this host, which may even have its name."""
    here = os.uname().nodename
    running = replace(SESSION, end=SessionEnd.RUNNING, ended_wall_ns=None, host=here, pid=2**22 + 7)
    (place / "a.zip").write_bytes(bundled([STALL], (), [running]))
    assert main(["import", "a.zip", "--store", "there"]) == 0
    store = Store(place / "there", retention=FOREVER)
    assert main(["report", "--store", "there"]) == 0
    (session,) = store.reader.sessions(IssueQuery())
    assert session.end is SessionEnd.RUNNING
    assert not session.is_running
    assert main(["clean", "--store", "there", "--all", "--yes"]) == 0
    assert store.reader.sessions(IssueQuery()) == []
    store.close()


@pytest.mark.usefixtures("filled")
def test_a_merge_that_fails_midway_leaves_nothing_behind(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    from loopcanary.store import intake

    main(["bundle", "-o", "a.zip"])
    there = Store(place / "there", retention=FOREVER)
    there.put([replace(SESSION, id="s9")], [])
    monkeypatch.setattr(intake, "_FRESH_PAYLOADS", "INSERT INTO main.nothing_of_the_kind VALUES (1)")
    assert main(["import", "a.zip", "--store", "there"]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert there.reader.totals(STALLS).issues == 0
    assert [one.id for one in there.reader.sessions(IssueQuery())] == ["s9"]
    there.close()
    connection = sqlite3.connect(place / "there" / "loopcanary.db")
    assert connection.execute("SELECT count(*) FROM payloads").fetchone() == (0,)
    connection.close()
