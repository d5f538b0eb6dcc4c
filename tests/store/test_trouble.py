"""Damage, other versions, full disks, folders that cannot be written, forks, many processes."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.building.stalls import KILLED, SESSION, STALL, stall

from loopcanary.model.search import STALLS, IssueQuery
from loopcanary.store import Store, StoreError
from loopcanary.store.sqlite import schema as store_schema

# Other tests of the same pytest process may have left a thread that is about to end.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

ALL = IssueQuery()
NOBODY = 65_534


def as_nobody(work: Callable[[], str]) -> str:
    """Runs the work in a child without root's rights, and gives what it returns."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(write, work().encode())
        except BaseException as error:  # noqa: BLE001 - told to the parent
            os.write(write, f"failed: {error!r}".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return text


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="changes user")


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A folder that another user can reach: pytest's own is private."""
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


# ---- damage -----------------------------------------------------------------------------------------

DAMAGE = {
    "text where a database should be": lambda _: b"this is no database, it is a letter to you\n" * 100,
    "a header of zeros": lambda data: bytes(100) + data[100:],
    "garbage in every page but the first": lambda data: data[:4096] + b"\xff" * (len(data) - 4096),
    "its second half missing": lambda data: data[: len(data) // 2 // 4096 * 4096],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_database_is_set_aside_and_a_new_one_begun(
    store: Store, folder: Path, make_store: Callable[..., Store], damage: Callable[[bytes], bytes]
) -> None:
    for i in range(50):
        store.put_issue(stall(id=f"s1-{i}"))
    store.close()
    damaged = damage(store.path.read_bytes())
    store.path.write_bytes(damaged)
    fresh = make_store()
    fresh.put_issue(KILLED)
    fresh.reader.totals(STALLS)
    assert fresh.reader.issues(STALLS) == [KILLED]
    [notice] = fresh.notices
    [aside] = [path for path in folder.iterdir() if ".damaged-" in path.name and "wal" not in path.name]
    assert aside.name in notice
    assert aside.read_bytes()[:100] == damaged[:100]


def test_damage_of_an_open_database_is_set_aside(store: Store, folder: Path) -> None:
    store.put([], [stall(id=f"s1-{i}") for i in range(50)])
    store.close()
    store.reader.totals(STALLS)
    with store.path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (store.path.stat().st_size - 4096))
    store.put_issue(KILLED)
    assert store.reader.issues(STALLS) == [KILLED]
    assert len(store.notices) == 1


def test_a_second_damage_keeps_the_first_one(folder: Path, make_store: Callable[..., Store]) -> None:
    for text in ("first", "second"):
        folder.mkdir(exist_ok=True)
        (folder / "loopcanary.db").write_text(text * 1_000)
        store = make_store()
        store.put_issue(STALL)
        store.close()
        (folder / "loopcanary.db").unlink()
    assert len([path for path in folder.iterdir() if ".damaged-" in path.name]) == 2


# ---- versions ---------------------------------------------------------------------------------------


def test_a_newer_format_is_refused_and_nothing_is_touched(
    store: Store, folder: Path, make_store: Callable[..., Store]
) -> None:
    store.put_issue(STALL)
    store.close()
    with sqlite3.connect(store.path) as connection:
        connection.execute(f"PRAGMA user_version = {store_schema.VERSION + 1}")
    connection.close()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(StoreError, match="newer loopcanary") as caught:
        make_store().put_issue(KILLED)
    assert "\n" not in str(caught.value)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_tables_that_cannot_be_made_leave_an_empty_file(
    folder: Path, make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store_schema, "_TABLES", (store_schema._TABLES[0], "NONSENSE"))
        with pytest.raises(StoreError):
            make_store().open()
    with sqlite3.connect(folder / "loopcanary.db") as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchall() == [(0,)]
    connection.close()
    assert make_store().reader.issues(STALLS) == []


# ---- folders and disks ------------------------------------------------------------------------------


@root_only
def test_a_folder_that_cannot_be_written_is_a_store_error(shared: Path) -> None:
    def put() -> str:
        try:
            Store(shared / "store").put_issue(STALL)
        except StoreError as error:
            return str(error)
        return "stored"

    assert "Permission denied" in as_nobody(put)


@root_only
def test_another_users_store_can_be_read_where_its_files_may_be(shared: Path) -> None:
    store = Store(shared)
    store.put([SESSION], [STALL])
    store.maintenance.sweep()
    store.put_issue(STALL)
    store.close()
    for path in shared.iterdir():
        path.chmod(0o644)

    def read() -> str:
        reader = Store(shared)
        found = reader.reader.groups(STALLS)
        try:
            reader.put_issue(KILLED)
        except StoreError as error:
            return f"{len(found)} group, {error}"
        return "written"

    text = as_nobody(read)
    assert text.startswith("1 group, ")
    assert "cannot be written" in text


def test_a_file_in_the_folders_place_is_a_store_error(folder: Path, make_store: Callable[..., Store]) -> None:
    folder.write_text("not a folder")
    with pytest.raises(StoreError, match="cannot be used"):
        make_store().put_issue(STALL)


def fill(store: Store) -> None:
    for i in range(2_000):
        store.put_issue(stall(id=f"s1-{i}"))


def limited_to(size: int) -> Callable[[], None]:
    def limit() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def test_a_file_size_limit_is_a_store_error(folder: Path, tree: Path) -> None:
    code = """
import sys
from pathlib import Path
from loopcanary.store import Store, StoreError
from tests.building.stalls import stall
store = Store(Path(sys.argv[1]))
try:
    for i in range(2_000):
        store.put_issue(stall(id=f"s1-{i}", began_wall_ns=__import__("time").time_ns()))
except StoreError as error:
    print(i, error)
"""
    result = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        cwd=tree,
        preexec_fn=limited_to(300_000),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert result.stderr == ""
    stored, _, message = result.stdout.partition(" ")
    assert "loopcanary.db" in message or "disk is full" in message
    reader = Store(folder)
    assert reader.reader.totals(STALLS).issues >= int(stored) > 0
    reader.close()


@root_only
def test_a_full_disk_is_a_store_error_that_says_so(shared: Path) -> None:
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", shared], check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        store = Store(shared / "store")
        with pytest.raises(StoreError, match="disk is full"):
            fill(store)
        assert store.reader.totals(STALLS).issues >= 0
        store.close()
    finally:
        subprocess.run(["umount", "-l", shared], check=True)


def test_a_store_can_be_read_where_no_file_can_grow(store: Store, make_store: Callable[..., Store]) -> None:
    store.put_issue(STALL)
    store.close()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        reader = make_store()
        found = reader.reader.issues(STALLS)
        reader.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert found == [STALL]


def test_no_shared_memory_means_an_ordinary_journal(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from loopcanary.store.sqlite import database

    class Refusing(sqlite3.Connection):
        def execute(self, statement: str, *values: object) -> sqlite3.Cursor:  # type: ignore[override]
            if "= WAL" in statement:
                raise sqlite3.OperationalError("locking protocol")
            return super().execute(statement, *values)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Refusing))
    store.put_issue(STALL)
    mode = store._database.outside_transaction(lambda c: c.execute("PRAGMA journal_mode").fetchone()[0])
    assert mode == "truncate"
    assert database.FILE_NAME in str(store.path)
    assert store.reader.issues(STALLS) == [STALL]


def test_a_kept_lock_is_a_store_error_in_bounded_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    from loopcanary.store.sqlite import database

    monkeypatch.setattr(database, "_PATIENCE_S", 0.2)
    store.put_issue(STALL)
    blocker = sqlite3.connect(store.path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    store.close()
    began = time.monotonic()
    with pytest.raises(StoreError, match="locked by another process"):
        store.put_issue(KILLED)
    assert time.monotonic() - began < 120
    blocker.execute("COMMIT")
    blocker.close()
    store.put_issue(KILLED)


# ---- processes ----------------------------------------------------------------------------------------

WRITER = """
import os, sys, time
from pathlib import Path
from loopcanary.store import Retention, Store
from loopcanary.store.sqlite import database
from tests.building.stalls import session, stall
database._PATIENCE_S = 240.0  # twelve processes, and maybe one core
store = Store(Path(sys.argv[1]), retention=Retention(age_ns=1 << 62))
print("ready", flush=True)
sys.stdin.read(1)
name = f"p{os.getpid()}"
store.put_session(session(id=name))
longest = 0.0
for i in range(int(sys.argv[2])):
    began = time.perf_counter()
    store.put_issue(stall(id=f"{name}-{i}", session=name, began_wall_ns=i))
    longest = max(longest, time.perf_counter() - began)
store.close()
print(longest)
"""


def test_many_processes_begin_a_store_at_once_and_lose_nothing(
    folder: Path, tree: Path, make_store: Callable[..., Store]
) -> None:
    processes, each = 8, 20
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(each)],
            cwd=tree,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(processes)
    ]
    assert [writer.stdout.readline() for writer in writers] == ["ready\n"] * processes
    for writer in writers:
        writer.stdin.write("g")
        writer.stdin.flush()
    outputs = [writer.communicate(timeout=280) for writer in writers]
    assert [errors for _, errors in outputs] == [""] * processes
    store = make_store()
    assert store.reader.totals(STALLS).issues == processes * each
    assert len(store.reader.sessions(ALL)) == processes


def test_a_forked_child_has_its_own_connection(store: Store) -> None:
    store.put_issue(STALL)
    pid = os.fork()
    if pid == 0:
        try:
            store.put_issue(KILLED)
            store.close()
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    store.put_issue(stall(id="s1-3"))
    assert {one.id for one in store.reader.issues(STALLS)} == {"s1-1", "s1-2", "s1-3"}


def test_a_fork_does_not_wait_for_a_transaction(store: Store) -> None:
    store.put_issue(STALL)

    def fork_inside(connection: sqlite3.Connection) -> int:
        connection.execute("DELETE FROM main.issues")
        pid = os.fork()
        if pid == 0:
            try:
                # The parent's transaction holds the writer's lock: reading must do.
                os._exit(0 if store.reader.totals(STALLS).issues == 1 else 1)
            except BaseException:  # noqa: BLE001 - told to the parent
                os._exit(2)
        return os.waitpid(pid, 0)[1]

    assert store._database.write(fork_inside) == 0
    assert store.reader.totals(STALLS).issues == 0


# ---- a program that closes what it did not open -------------------------------------------------------


def close_the_log(folder: Path) -> None:
    """As a program does that closes a descriptor of its own twice: its number is another file's by then."""
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            if each.readlink() == folder / "loopcanary.db-wal":
                os.close(int(each.name))


def test_what_was_closed_in_a_transaction_is_opened_again(store: Store, folder: Path) -> None:
    store.put_issue(STALL)
    attempts = []

    def closed_inside(connection: sqlite3.Connection) -> None:
        attempts.append(connection)
        if len(attempts) == 1:
            close_the_log(folder)
        connection.execute("DELETE FROM main.issues")

    store._database.write(closed_inside)
    assert len(set(map(id, attempts))) == 2
    assert store.reader.totals(STALLS).issues == 0


def test_what_was_closed_as_the_store_was_opened_is_opened_again(store: Store, folder: Path) -> None:
    opened = []

    def closed_once(connection: sqlite3.Connection) -> None:
        opened.append(connection)
        if len(opened) == 1:
            connection.execute("SELECT count(*) FROM main.issues").fetchone()
            close_the_log(folder)

    store._database.on_connect(closed_once)
    store.put_issue(STALL)
    assert len(opened) == 2
    assert [one.id for one in store.reader.issues(STALLS)] == [STALL.id]
