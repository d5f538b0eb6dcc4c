"""One SQLite file, many processes: connection, short transactions, bounded retries, damage set aside.

Used on the drain thread inside the watched program, so SQLite is imported when it is first needed and
every wait is bounded. Everything that goes wrong leaves as StoreError.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from loopcanary.store.errors import StoreError
from loopcanary.store.sqlite import schema
from loopcanary.store.sqlite.files import (
    FILE_NAME,
    Descriptors,
    alone,
    be_sparing,
    has_opened,
    identity,
    is_writable,
    make_immortal,
    make_private_file,
    make_private_folder,
    set_aside,
    uri_path,
)
from loopcanary.unpatched import unpatched
from loopcanary.whose_folder import owner, reach

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from loopcanary.store.sqlite.lent_copy import LentCopy


_T = TypeVar("_T")

_PATIENCE_S = 6.0
"""How long one call waits for other processes, all attempts together."""
_REPAIRS_MAX = 3
_BUSY_TIMEOUT_S = 0.05
"""SQLite's own waiting, kept short: it polls every 100 ms in the end, and of 64 writers the unlucky ones
starve while the lock lies idle. Ours below polls at random moments."""
_PAUSE_LEAST_S, _PAUSE_SPREAD_S = 0.002, 0.018

# Result codes of sqlite.org/rescode.html; the low byte is the primary one.
_BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT = 5, 6, 8, 10, 11
_FULL, _CANTOPEN, _PROTOCOL, _NOTADB = 13, 14, 15, 26
_READONLY_MOVED = _READONLY | 4 << 8
_WRITE = "BEGIN IMMEDIATE"


class Database:
    """A connection that is made when it is needed, and made again after damage, removal or fork."""

    def __init__(self, folder: Path, *, notify: Callable[[str], object]) -> None:
        self.folder = folder
        self.path = folder / FILE_NAME
        self._opened = self.path
        """What SQLite opens: of another user's database root's copy."""
        self._copy: LentCopy | None = None
        self._read_only = False
        self._is_alone = False
        self._connections = 0
        self._notify = notify
        self._lock = unpatched("_thread", "allocate_lock")()
        self._pid = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._descriptors = Descriptors()
        self._on_connect: Callable[[sqlite3.Connection], None] | None = None

    def write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Runs the work in one writing transaction. It may run again after a conflict. StoreError."""
        return self._run(work, _WRITE)

    def read(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Runs the work on one unchanging view of the database. StoreError."""
        return self._run(work, "BEGIN")

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a reading statement. StoreError."""
        return self.read(lambda connection: connection.execute(statement, values).fetchall())

    def row(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """The first row of a reading statement; None without any. StoreError."""
        return self.read(lambda connection: connection.execute(statement, values).fetchone())

    def outside_transaction(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Runs work that SQLite refuses inside a transaction, such as a vacuum. StoreError."""
        return self._run(work, None)

    def on_connect(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Runs `work` on every new connection, and on the present one. StoreError."""
        self._on_connect = work
        if self._connection is not None:
            self.outside_transaction(work)

    def state(self) -> tuple[int, int, int]:
        """A value that differs whenever an answer may have changed: by others (PRAGMA data_version), by us,
        by what is laid over the database. StoreError."""

        def read(connection: sqlite3.Connection) -> tuple[int, int, int]:
            version = connection.execute("PRAGMA main.data_version").fetchone()[0]
            return self._connections, version, connection.total_changes

        return self._run(read, None)

    @property
    def lender(self) -> int:
        """The user whose database this is, where root only reads it; else 0."""
        return owner(str(self.folder))

    def open(self) -> None:
        """Connects now, so that what is wrong is said now. StoreError."""
        self._run(lambda _: None, None)

    def close(self) -> None:
        """Lets go of the file; the next use opens it again."""
        if self._forked():
            return
        with self._lock:
            self._disconnect()

    def rest(self, patience_s: float) -> bool:
        """Closes the file and keeps every thread from it until `go_on`; False where a transaction takes
        longer. What SQLite has open at a fork it has open in the child, with the locks that the parent held
        (section 2.6 of sqlite.org/howtocorrupt.html)."""
        if not self._lock.acquire(timeout=patience_s):
            return False
        try:
            self._disconnect()
        except BaseException:
            self._lock.release()
            raise
        return True

    def go_on(self) -> None:
        """Ends the rest; the next use opens the file again."""
        self._lock.release()

    # ---- running ---------------------------------------------------------------------------

    def _run(self, work: Callable[[sqlite3.Connection], _T], begin: str | None) -> _T:
        import sqlite3

        self._forked()
        deadline_s = time.monotonic() + _PATIENCE_S
        repairs = 0
        with self._lock:
            while True:
                try:
                    return self._transact(self._connected(), work, begin)
                except sqlite3.Error as error:
                    if is_busy(error) and time.monotonic() < deadline_s:
                        unpatched("time", "sleep")(_PAUSE_LEAST_S + _PAUSE_SPREAD_S * os.urandom(1)[0] / 255)
                        continue
                    repairs += 1
                    if repairs > _REPAIRS_MAX or not self._repair(error):
                        raise StoreError(described(error, self.path)) from error
                except (OSError, OverflowError, UnicodeError) as error:
                    raise StoreError(f"the store in {self.folder} cannot be used: {error}") from error
                finally:
                    if self._is_alone:
                        self._disconnect()

    def _transact(
        self, connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], _T], begin: str | None
    ) -> _T:
        if begin is None:
            return work(connection)
        if begin == _WRITE and self._copy is not None:
            raise StoreError(unwritable(self.path))
        connection.execute(begin)
        try:
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            # A full disk or a damaged page has rolled back already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._descriptors.learn(self._opened)
        return result

    def _repair(self, error: sqlite3.Error) -> bool:
        """Puts things right for another attempt; False where nothing can be done."""
        code = code_of(error)
        if not code and self._connection is not None and self._connection.text_factory is str:
            # A text is damaged and no UTF-8 any more: what of it can be read is.
            self._connection.text_factory = partial(str, encoding="utf-8", errors="replace")
            return True
        is_lost = code & 0xFF == _IOERR and not self._is_alone and self._descriptors.one_is_lost(self._opened)
        is_moved = code == _READONLY_MOVED or (self._file is not None and self._is_another())
        if is_lost or is_moved:
            # The program closed it, or the store was removed or set aside, while we had it open.
            self._disconnect()
            return True
        if code & 0xFF in (_CORRUPT, _NOTADB) and not self._read_only:
            self._disconnect()
            self._set_aside(error)
            return True
        return False

    def _set_aside(self, error: sqlite3.Error) -> None:
        with alone(self._lock_path()):
            # Of several processes that found the damage, the first one renames; the others find a new file.
            if self._file is None or self._is_another():
                return
            target = set_aside(self._place / FILE_NAME)
        self._notify(
            f"{self.path} is damaged ({error}); it was set aside as {target.name}, a new one was begun: "
            f"`sqlite3 {target.name} .recover` may still save its records, else delete it"
        )

    # ---- connecting ------------------------------------------------------------------------

    def _forked(self) -> bool:
        """True in a child that inherited this object: its lock and connection belong to the parent."""
        if self._pid == os.getpid():
            return False
        make_immortal(self._connection)
        self._connection = None
        self._lock = unpatched("_thread", "allocate_lock")()
        self._pid = os.getpid()
        return True

    def _connected(self) -> sqlite3.Connection:
        # SQLite writes on into a file that was removed or set aside, where it could never be read.
        if self._connection is not None and (self._is_another() or not self._descriptors.are_ours()):
            self._disconnect()
        if self._connection is None:
            be_sparing()
            self._connection = self._connect()
            self._connections += 1
            self._descriptors = Descriptors()
            self._descriptors.learn(self._opened)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self._descriptors.are_ours():
            connection.close()
        else:
            make_immortal(connection)
        self._copy = None

    @property
    def _place(self) -> Path:
        """The folder, by a path that no other user can lead elsewhere."""
        return self._copy.path.parent if self._copy is not None else Path(reach(str(self.folder)))

    def _is_another(self) -> bool:
        """Whether the path leads to another file than the one that is open."""
        if self._copy is not None:
            return not self.lender or self._copy.is_old()
        return identity(self._place / FILE_NAME) != self._file

    def _lock_path(self) -> Path:
        return self._place / f"{FILE_NAME}.lock"

    def _connect(self) -> sqlite3.Connection:
        import sqlite3

        if self.lender:
            return self._connect_to_copy()
        # SQLite makes files beside its own, so it needs the folder too. A reader of another user's store
        # has neither and opens it without them.
        # SQLite opens what links lead to, and its descriptors are known by that name.
        file, self._opened = self._place / FILE_NAME, Path(os.path.realpath(self.path))
        self._read_only = file.exists() and not (is_writable(file) and is_writable(file.parent))
        if not self._read_only:
            make_private_folder(self.folder)
            file = self._place / FILE_NAME
            make_private_file(file)
        self._file = identity(file)
        if not self._read_only:
            return self._open_to_write()
        try:
            return self._open_file("mode=ro")
        except sqlite3.OperationalError:
            # A reader of a write-ahead log wants to write its index beside it. Where it may not, and nobody
            # has the file open, the file is whole in itself.
            return self._open_file("mode=ro&immutable=1")

    def _connect_to_copy(self) -> sqlite3.Connection:
        from loopcanary.store.sqlite.lent_copy import LentCopy

        self._copy = copy = LentCopy(reach(str(self.folder), theirs=True))
        try:
            make_private_file(copy.path)  # where there is no database to copy
            self._opened, self._file, self._read_only = copy.path, identity(copy.path), False
            connection = self._open_to_write()
        finally:
            copy.unlink()
        self._read_only = True
        return connection

    def _open_to_write(self) -> sqlite3.Connection:
        import sqlite3

        self._is_alone = False
        try:
            return self._open_file("mode=rw")
        except sqlite3.OperationalError as error:
            if code_of(error) & 0xFF not in (_IOERR, _FULL, _CANTOPEN):
                raise
            # On a full disk the index of the write-ahead log has no room beside it; one that keeps all others
            # out has it in its own memory.
            self._is_alone = True
            return self._open_file("mode=rw")

    def _open_file(self, mode: str) -> sqlite3.Connection:
        import sqlite3

        connection = sqlite3.connect(
            f"file:{uri_path(self._opened)}?{mode}",
            uri=True,
            timeout=_BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._verify("")
            if self._is_alone:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if self._copy is not None and not schema.is_ours(connection):
            raise StoreError(
                f"{self.path} has views, triggers or virtual tables, which loopcanary never makes: choose "
                "another --store"
            )
        version = self._refuse_unknown(connection)
        self._verify_all(connection)
        # Sources and names of other programs are data: a crafted schema must not run functions.
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA mmap_size = 0")
        if version == 0:
            if self._read_only:
                raise StoreError(
                    f"{self.path} is not a store, and cannot be written to make it one: check its owner and "
                    "mode, or choose another --store"
                )
            with alone(self._lock_path()):
                self._create(connection)
        if not self._read_only:
            # A crash may lose the last stalls but never the database (WAL with NORMAL).
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = FAST")
        if self._on_connect is not None:
            self._on_connect(connection)

    def _refuse_unknown(self, connection: sqlite3.Connection) -> int:
        """The layout's version."""
        version = schema.version_of(connection)
        if version > schema.VERSION:
            raise StoreError(
                f"{self.path} was written by a newer loopcanary (format {version}, this one knows "
                f"{schema.VERSION}): upgrade loopcanary or choose another --store; nothing was changed"
            )
        if version not in (0, schema.VERSION):
            raise StoreError(
                f"{self.path} has format {version}, which no loopcanary reads: choose another --store; "
                "nothing was changed"
            )
        return version

    def _create(self, connection: sqlite3.Connection) -> None:
        if self._refuse_unknown(connection) == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only before the first table
        choose_journal(connection)
        self._verify_all(connection)
        schema.create(connection)

    def _verify_all(self, connection: sqlite3.Connection) -> None:
        schema.version_of(connection)  # a log is opened with the first reading
        is_wal = connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        self._verify(
            "", *(("-wal",) if is_wal else ()), *(("-shm",) if is_wal and not self._is_alone else ())
        )

    def _verify(self, *suffixes: str) -> None:
        """StoreError where another user has led SQLite elsewhere, which opens these files by their paths."""
        file = self._place / FILE_NAME
        if self._copy is None and file != self.path and not has_opened(self._opened, file, suffixes):
            raise StoreError(f"{self.folder} was replaced while it was opened; nothing was stored")


def choose_journal(connection: sqlite3.Connection) -> None:
    """Chooses the write-ahead log, with which readers and writers do not wait for each other.

    Network and some container filesystems have no shared memory for it: an ordinary journal then, as safe.
    """
    import sqlite3

    try:
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    except sqlite3.OperationalError as error:
        # Another process does the same at this moment (locking protocol may mean that, too, or never work).
        if is_busy(error) and code_of(error) & 0xFF != _PROTOCOL:
            raise
        mode = "refused"
    if mode != "wal":
        connection.execute("PRAGMA journal_mode = TRUNCATE")


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process is in the way, now."""
    return code_of(error) & 0xFF in (_BUSY, _LOCKED, _PROTOCOL)


def code_of(error: sqlite3.Error) -> int:
    """The extended result code; 0 where there is none. The low byte is the primary one."""
    return getattr(error, "sqlite_errorcode", 0) or 0


def described(error: sqlite3.Error, path: Path) -> str:
    """What is wrong with the database of this path, and what to do."""
    code = code_of(error) & 0xFF
    if code == _FULL:
        return f"the disk is full: nothing more can be stored in {path.parent}"
    if code == _READONLY:
        return unwritable(path)
    if is_busy(error):
        return f"{path} is locked by another process: try again; nothing was changed"
    if code in (_CORRUPT, _NOTADB):
        from loopcanary.words.commands import reading

        return (
            f"{path} is damaged ({error}), and cannot be written to be set aside: its owner's next "
            f"`{reading('report', [path.parent])}` does that"
        )
    if code == _CANTOPEN:
        return f"{path} cannot be opened: check that it is a file, its owner and its mode"
    if code == _IOERR:
        return f"{path} cannot be read ({error}): check its disk and the filesystem that it is on"
    return f"{path}: {error}"


def unwritable(path: Path) -> str:
    """The error that a database cannot be written."""
    return f"{path} cannot be written: check its owner and mode, or choose another --store"
