"""Root reads another user's store: nothing is made, changed or locked, and no link is followed."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.building.evidence import going_on
from tests.building.stalls import SESSION, STALL, stall
from tests.root.conftest import FOREVER, NOBODY, as_nobody, seen
from tests.top.test_survey import builder, gone

from loopcanary import keeper, whose_folder
from loopcanary.facts import is_ours
from loopcanary.model.search import IssueQuery
from loopcanary.source_text import FileSources
from loopcanary.store import Store, StoreError, may_be_store
from loopcanary.wire import to_wire

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="is about root on Linux"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

READING = {
    "report": ("report",),
    "show": ("show", "1"),
    "export": ("export", "--format", "jsonl"),
    "bundle": ("bundle", "--output", "{out}"),
    "diff": ("diff", "--version-a", "1", "--version-b", "2"),
    "top": ("top", "--once", ".loopcanary"),
    "keep --status": ("keep", "--status", ".loopcanary"),
    "doctor": ("doctor", "--store", ".loopcanary"),
}
NAMES = (
    *("loopcanary.db", "loopcanary.db-wal", "loopcanary.db-shm", "loopcanary.db-journal"),
    *("loopcanary.db.lock", ".gitignore", "flight", "keeper", "notifications"),
    *("flight/x.flight", "flight/x.saved", "keeper/{key}.log", "keeper/{key}.json", "keeper/{key}.bell"),
    *("keeper/{key}.new", "keeper/{key}.lock", "notifications/desktop.json"),
)


@pytest.mark.parametrize("words", READING.values(), ids=READING)
def test_nothing_is_made_or_changed(loopcanary, store, tmp_path, words):
    before = seen(store.parent)
    done = loopcanary(*(word.format(out=tmp_path / "out") for word in words))
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    assert seen(store.parent) == before


@pytest.mark.native
@pytest.mark.parametrize("words", [("doctor", "--patches"), ("doctor",)], ids=" ".join)
def test_no_code_of_the_other_users_runs(loopcanary, theirs, tmp_path, words):
    def put() -> None:
        for name in ("asyncio", "loopcanary", "click"):
            (theirs / f"{name}.py").write_text("import os; open(os.environ['MARK'], 'x')")

    as_nobody(put)
    done = loopcanary(*words, MARK=str(tmp_path / "mark"))
    assert "Traceback" not in done.stderr
    assert "asyncio" in done.stdout
    assert not (tmp_path / "mark").exists()


def test_what_a_living_writer_has_only_in_its_log_is_shown(store, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reading, writing = os.pipe()
    over, end = os.pipe()

    def write() -> None:
        if os.fork():  # what is left open at its end would be put into the database
            return
        one = Store(store, retention=FOREVER)
        one.put_issue(stall(id="second"))
        os.write(writing, b"x")
        os.close(end)
        os.read(over, 1)
        os._exit(0)

    as_nobody(write)
    os.close(writing)
    assert os.read(reading, 1) == b"x"
    before, mine = seen(store), Store(store, retention=FOREVER)
    assert before[f"{store}/loopcanary.db-wal"][3] > 0
    assert {one.id for one in mine.reader.issues(IssueQuery(), 10)} == {STALL.id, "second"}
    with pytest.raises(StoreError, match="cannot be written"):
        mine.put_session(SESSION)
    assert seen(store) == before
    assert [*tmp_path.glob("loopcanary-*")] == []
    mine.close()
    os.close(end)


def test_a_later_change_is_seen(store, monkeypatch):
    monkeypatch.setattr("loopcanary.store.sqlite.lent_copy._PAUSE_S", 0)
    mine = Store(store, retention=FOREVER)
    assert len(mine.reader.issues(IssueQuery(), 10)) == 1
    state = mine.reader.state()

    def write() -> None:
        one = Store(store, retention=FOREVER)
        one.put_issue(stall(id="second"))
        one.close()

    as_nobody(write)
    while len(mine.reader.issues(IssueQuery(), 10)) == 1:
        pass  # a copy is as fresh for nine times as long as it took
    assert mine.reader.state() != state
    mine.close()


def test_a_store_without_a_database_gets_none(theirs, loopcanary):
    as_nobody(lambda: (theirs / ".loopcanary/flight").mkdir(parents=True))
    done = loopcanary("report")
    assert done.returncode == 0
    assert [path.name for path in (theirs / ".loopcanary").iterdir()] == ["flight"]


def test_files_of_root_are_not_quoted_from_another_users_data(store, tmp_path):
    files = {name: tmp_path / name for name in ("secret", "theirs", "open")}
    for file in files.values():
        file.write_text("one line")
        file.chmod(0o600)
    files["open"].chmod(0o644)
    os.chown(files["theirs"], NOBODY, NOBODY)
    assert all(FileSources().read(str(file)) for file in files.values())
    assert Store(store).lender == NOBODY
    assert may_be_store(store)
    assert {name for name, file in files.items() if FileSources().read(str(file))} == {"theirs", "open"}


def put_link(link: Path, target: Path) -> None:
    """Puts a link in the place of what is there."""
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.symlink_to(target)


@pytest.mark.parametrize("is_there", [False, True], ids=["to nothing", "to a file"])
@pytest.mark.parametrize("name", NAMES)
def test_no_link_is_followed(loopcanary, store, victim, name, is_there):
    target = victim / "file"
    if is_there:
        target.write_text("root's")
        os.utime(target, (10**9, 10**9))
    as_nobody(lambda: put_link(store / name.format(key=keeper.key()), target))
    before = seen(victim), seen(store)
    done = loopcanary("report")
    assert "Traceback" not in done.stderr
    assert (seen(victim), seen(store)) == before


@pytest.mark.parametrize("words", READING.values(), ids=READING)
@pytest.mark.parametrize(
    "names", [NAMES[9:], ("flight", "keeper", "notifications")], ids=["files", "folders"]
)
def test_no_command_follows_links(loopcanary, store, victim, tmp_path, names, words):  # noqa: PLR0917
    def put() -> None:
        for name in names:
            put_link(store / name.format(key=keeper.key()), victim)

    as_nobody(put)
    before = seen(victim), seen(store)
    done = loopcanary(*(word.format(out=tmp_path / "out") for word in words))
    assert "Traceback" not in done.stderr
    assert (seen(victim), seen(store)) == before


@pytest.mark.parametrize("name", ["loopcanary.db", "loopcanary.db-wal", ".gitignore", "flight/x.flight"])
def test_no_pipe_is_waited_for(loopcanary, store, name):
    def put() -> None:
        with suppress(OSError):
            (store / name).unlink()
        os.mkfifo(store / name)

    as_nobody(put)
    assert "Traceback" not in loopcanary("report").stderr


def test_no_pipe_of_a_keeper_is_waited_for(loopcanary, store):
    def put() -> None:
        for ending in ("json", "lock"):
            os.mkfifo(store / f"keeper/1.{ending}")
        (store / "keeper/2.lock").touch(0o600)
        os.mkfifo(store / "keeper/2.json")

    as_nobody(put)
    with (store / "keeper/2.lock").open("w") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        assert loopcanary("keep", "--status").returncode == 0


@pytest.mark.parametrize("words", READING.values(), ids=READING)
def test_a_store_that_is_a_link_is_not_opened(loopcanary, theirs, victim, tmp_path, words):
    as_nobody(lambda: (theirs / ".loopcanary").symlink_to(victim))
    done = loopcanary(*(word.format(out=tmp_path / "out") for word in words))
    assert "Traceback" not in done.stderr
    assert [*victim.iterdir()] == []


def test_a_link_above_the_store_is_not_followed(theirs, victim):
    (victim / ".loopcanary/flight").mkdir(parents=True)
    as_nobody(lambda: (theirs / "deep").symlink_to(victim))
    assert not may_be_store(theirs / "deep/.loopcanary")


def test_roots_own_links_are_followed(root, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    one = Store(tmp_path / "link/store")
    one.put_session(SESSION)
    one.close()
    assert (tmp_path / "real/store/loopcanary.db").exists()


def test_what_roots_own_link_leads_through_is_another_users(theirs, store, victim, tmp_path):
    """A link to the other user's folder leads on by that user's links."""
    made_elsewhere(victim / "inside")
    as_nobody(lambda: (theirs / "link").symlink_to(victim))
    (tmp_path / "direct").symlink_to(theirs)
    (tmp_path / "through").symlink_to(theirs / "link")
    (tmp_path / "chain").symlink_to("through")
    made_elsewhere(theirs.parent / "back/inside")
    (tmp_path / "back").symlink_to(f"{theirs}/../back")
    (tmp_path / "loop").symlink_to("loop")
    assert [is_ours(str(tmp_path / one)) for one in ("direct", "through", "chain", "back", "loop")] == [
        False
    ] * 5
    assert may_be_store(tmp_path / "direct/.loopcanary")
    for name in ("through", "chain", "back", "loop"):
        assert not may_be_store(tmp_path / name / "inside")
        assert (
            whose_folder.reach(str(tmp_path / name / "inside"), make=True, theirs=True)
            == whose_folder.NOWHERE
        )
    assert seen(victim / "inside").keys() == {f"{victim}/inside", f"{victim}/inside/loopcanary.db"}


def test_roots_own_store_is_used_through_roots_link(theirs, tmp_path):
    (tmp_path / "app").symlink_to(theirs)
    one = Store(tmp_path / "app/mine", retention=FOREVER)
    one.put([SESSION], [STALL])
    assert one.reader.totals(IssueQuery()).issues == 1
    one.close()
    assert (theirs / "mine/loopcanary.db").stat().st_uid == 0


def test_a_link_of_roots_that_leads_nowhere_yet(root, theirs, tmp_path):
    (tmp_path / "mine").symlink_to(tmp_path / "later")
    (tmp_path / "other").symlink_to(theirs / "later")
    assert is_ours(str(tmp_path / "mine/store"))
    assert not is_ours(str(tmp_path / "other/store"))


@contextmanager
def replaced(folder: Path, victim: Path) -> Iterator[None]:
    """The other user puts a link, and the folder again, in turns, with a rest now and then."""
    parent = os.getpid()
    swapping = os.fork()
    if swapping == 0:
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            away = folder.parent / "away"
            while os.getppid() == parent:
                folder.rename(away)
                folder.symlink_to(victim)
                folder.unlink()
                away.rename(folder)
                time.sleep(os.urandom(1)[0] / 20_000)
        finally:
            os._exit(1)
    try:
        yield
    finally:
        os.kill(swapping, signal.SIGKILL)
        os.waitpid(swapping, 0)


def made_elsewhere(victim: Path) -> None:
    """A database where the link leads."""
    victim.mkdir(exist_ok=True, parents=True)
    other = sqlite3.connect(victim / "loopcanary.db")
    other.execute("CREATE TABLE secret (one)")
    other.close()


def test_a_store_that_is_replaced_is_read_nowhere_else(store, victim):
    made_elsewhere(victim)
    before, found = seen(victim), 0
    with replaced(store, victim):
        while found < 30:
            whose_folder._held.clear()  # as in a new process
            if may_be_store(store):
                one = Store(store, retention=FOREVER)
                found += len(one.reader.issues(IssueQuery(), 10))
                one.close()
    assert seen(victim) == before


def test_a_store_that_is_replaced_is_written_nowhere_else(theirs, victim):
    made_elsewhere(victim)
    store, before, stored = theirs / ".loopcanary", seen(victim), 0
    with closing(Store(store)) as one:
        one.open()
    with replaced(store, victim):
        while stored < 30:
            whose_folder._held.clear()
            if may_be_store(store):
                one = Store(store, retention=FOREVER)
                with suppress(StoreError):
                    one.put_issue(stall(id=str(stored)))
                    stored += 1
                one.close()
    assert seen(victim) == before
    whose_folder._held.clear()
    mine = Store(next(one for one in theirs.iterdir() if one.is_dir() and not one.is_symlink()))
    assert len(mine.reader.issues(IssueQuery(), 100)) == 30
    mine.close()


@pytest.mark.native
def test_programs_of_another_user_are_seen(loopcanary, store):
    """The parent of this process, as if it were theirs."""
    files = {"living": builder(), "dead": gone()}
    for name, program in files.items():
        session = replace(SESSION, id=name, started_wall_ns=time.time_ns())
        program.put_facts(json.dumps({**to_wire(session), "no_keeper": "the settings say so"}).encode())
        program.add_stall(going_on(serial=1))
        os.chown(program.write(store / f"flight/{name}.flight"), NOBODY, NOBODY)
    before = seen(store)
    with (store / "flight/living.flight").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        report, doctor = loopcanary("report"), loopcanary("doctor", "--no-self-test", str(store))
    assert "still in progress" in report.stdout
    assert f"flight files of killed programs of user {NOBODY} are not stored" in report.stdout + report.stderr
    assert doctor.stdout.count("diagnoses its own stalls: the settings say so") == 1
    assert seen(store) == before


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_copy_is_left_however_a_command_ends(store, tmp_path, end):
    command = [sys.executable, "-P", "-m", "loopcanary", "ui", "--no-browser", str(store)]
    pages = subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True
    )
    assert "http" in pages.stdout.readline()
    pages.send_signal(end)
    pages.communicate()
    assert [*tmp_path.glob("loopcanary-*")] == []


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n WHERE x < 0"
HOSTILE = {
    "view": f"CREATE VIEW issues AS {ENDLESS}",
    "virtual table": "CREATE VIRTUAL TABLE issues USING fts5(id)",
    "trigger": f"CREATE TRIGGER t AFTER INSERT ON payloads BEGIN {ENDLESS}; END",
    "generated": "CREATE TABLE issues (row INTEGER PRIMARY KEY, id AS (printf('%.*c', 999999999, 'x')))",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_a_hostile_schema_would_run_is_refused(loopcanary, store, kind):
    def spoil() -> None:
        with closing(sqlite3.connect(store / "loopcanary.db")) as opened, opened:
            if kind != "trigger":
                opened.execute("DROP TABLE issues")
            opened.execute(HOSTILE[kind])

    as_nobody(spoil)
    done = loopcanary("report")
    assert done.returncode == 2
    assert "which loopcanary never makes" in done.stderr
