"""Files of the store: private modes, one process at a time where that matters, damage set aside."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from loopcanary.facts import is_short_of_descriptors
from loopcanary.late_dataclass import dataclass
from loopcanary.model.config import STORE_NAME
from loopcanary.store.errors import StoreError
from loopcanary.unpatched import unpatched
from loopcanary.whose_folder import open_file, reach

if TYPE_CHECKING:
    import sqlite3


FILE_NAME = "loopcanary.db"
FOLDER_MODE = 0o700
FILE_MODE = 0o600
_FIRST_NAMES = frozenset({"flight", "keeper", "notifications"})
"""What the engine, and what follows a store, make in a store's folder before there is a database."""
_GITIGNORE = "# Made by loopcanary: recorded stalls are no part of the source.\n*\n"
_LOCK_PATIENCE_S = 3.0
_SIDE_FILES = ("-wal", "-shm", "-journal")


def make_private_folder(folder: Path) -> None:
    """The folder with mode 0700 and a .gitignore that keeps it out of commits. Raises OSError.

    A folder that was there stays as it is: its permissions are its maker's choice.
    """
    name, folder = folder.name, Path(reach(str(folder), make=True))
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True)
    except FileExistsError:
        names = {path.name for path in folder.iterdir()}
        if name != STORE_NAME or not names or names - _FIRST_NAMES:
            return
        # The engine made it a moment ago, for its flight file.
        folder.chmod(FOLDER_MODE)
    with suppress(OSError):
        descriptor = os.open(folder / ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        with os.fdopen(descriptor, "w") as file:
            file.write(_GITIGNORE)


def may_be_store(folder: Path) -> bool:
    """Whether the folder is a store's: what is there, if anything, was made by one."""
    folder = Path(reach(str(folder), theirs=True))
    try:
        names = {path.name for path in folder.iterdir()}
    except PermissionError:  # what opens it says so
        return True
    except OSError:
        return False
    return not names or bool(names & {FILE_NAME, *_FIRST_NAMES}) or _is_ours(folder / ".gitignore")


def _is_ours(gitignore: Path) -> bool:
    try:
        with os.fdopen(open_file(str(gitignore)), errors="replace") as file:
            return file.read(len(_GITIGNORE) + 1) == _GITIGNORE
    except OSError:
        return False


def is_writable(path: Path) -> bool:
    """Says whether this user may write the file, or make files in the folder."""
    return os.access(path, os.W_OK)


def make_private_file(path: Path) -> None:
    """The file with mode 0600, if it is not there. Raises OSError."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """One process at a time inside, for as long as patience lasts.

    Where the filesystem has no locks, or another process holds this one for seconds, it goes on without:
    the lock keeps processes from doing the same repair twice, nothing is lost if they do.
    """
    try:
        import fcntl

        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    except (ImportError, OSError):
        yield
        return
    try:
        deadline = time.monotonic() + _LOCK_PATIENCE_S
        while time.monotonic() < deadline:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                unpatched("time", "sleep")(0.01)
            except OSError:
                break
        yield
    finally:
        os.close(descriptor)


def identity(path: Path) -> tuple[int, int] | None:
    """What makes this file different from another one of the same name; None where there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def set_aside(path: Path) -> Path:
    """Renames the file, and what SQLite keeps beside it, to `<name>.damaged-<time>`. Raises OSError."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    target = path.with_name(f"{path.name}.damaged-{stamp}")
    number = 1
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    path.rename(target)
    for side in _SIDE_FILES:
        with suppress(OSError):
            path.with_name(path.name + side).rename(target.with_name(target.name + side))
    return target


def uri_path(path: Path) -> str:
    """The path as sqlite.org/uri.html wants it; urllib would be an import for three characters."""
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


_SELF = "/proc/self/fd"
_KEPT = ("", "-wal", "-shm")
_SUFFIXES = (*_KEPT, "-journal")


def be_sparing() -> None:
    """StoreError where the program needs all descriptors that it may have."""
    if is_short_of_descriptors():
        raise StoreError("the program needs all descriptors that it may have")


class Descriptors:
    """Those of one connection. Knows none where there is no /proc."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}
        self._all_known = False
        self._is_lost = False

    @property
    def known(self) -> Collection[tuple[int, int]]:
        """The identities of the files that the descriptors are open on."""
        return self._known.values()

    def learn(self, database: Path) -> None:
        """Looks for those that were opened since; SQLite opens its log with the first transaction."""
        if self._all_known:
            return
        names = {f"{database}{suffix}" for suffix in _SUFFIXES}
        found = {}
        for descriptor, name in _open_files():
            if name in names:
                with suppress(OSError):  # closed meanwhile
                    found[descriptor] = _identity(descriptor)
        self._all_known = found == self._known
        self._known = found

    def are_ours(self) -> bool:
        """Whether each one that is known still is the file that it was, and none is lost."""
        if self._is_lost:
            return False
        try:
            return all(_identity(descriptor) == file for descriptor, file in self._known.items())
        except OSError:
            return False

    def one_is_lost(self, database: Path) -> bool:
        """Whether one was closed, even one that was not known yet: those files of a write-ahead log that are
        there, SQLite keeps open."""
        names = {name for _, name in _open_files()}
        kept = {f"{database}{suffix}" for suffix in _KEPT}
        missing = bool(names) and any(name not in names and os.path.lexists(name) for name in kept)
        self._is_lost = missing or not self.are_ours()
        return self._is_lost


def has_opened(database: Path, file: Path, suffixes: Sequence[str]) -> bool:
    """Whether these files are open under the names of the database's."""
    opened = Descriptors()
    opened.learn(database)
    return all(identity(Path(f"{file}{suffix}")) in opened.known for suffix in suffixes)


def _open_files() -> Iterator[tuple[int, str]]:
    """Each descriptor of the process, and what it is. Cheap: it is asked for after a transaction."""
    try:
        descriptors = os.listdir(_SELF)  # noqa: PTH208
    except OSError:
        return
    for descriptor in descriptors:
        with suppress(OSError):  # another thread's, closed meanwhile
            yield int(descriptor), os.readlink(f"{_SELF}/{descriptor}")  # noqa: PTH115


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def make_immortal(connection: sqlite3.Connection | None) -> None:
    """Keeps SQLite from closing, in a forked child, what the parent has open, and anywhere, what is not its
    own any more.

    Closing would roll back the transaction that the parent may be in the middle of (section 2.6 of
    sqlite.org/howtocorrupt.html); a reference never given back outlives the interpreter's own clean-up.
    """
    if connection is None:
        return
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


_NAME = re.compile(re.escape(FILE_NAME) + r"\.damaged-(\d{8}T\d{6}Z)(-\d+)?")
_S = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """A damaged database that was set aside."""

    name: str
    bytes: int
    wall_ns: int
    """When it was set aside, to a second."""


def set_aside_in(folder: Path) -> list[Aside]:
    """Damaged databases in a store's folder, newest first; none where it cannot be read.

    The first process that meets the damage sets the file aside; this finds it.
    """
    found: list[Aside] = []
    try:
        for path in Path(reach(str(folder), theirs=True)).iterdir():
            aside = _aside(path)
            if aside is not None:
                found.append(aside)
    except OSError:
        return []
    return sorted(found, key=lambda one: (one.wall_ns, one.name), reverse=True)


def _aside(path: Path) -> Aside | None:
    match = _NAME.fullmatch(path.name)
    if match is None:
        return None
    try:
        moment = datetime.strptime(match[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        return Aside(name=path.name, bytes=path.lstat().st_size, wall_ns=int(moment.timestamp()) * _S)
    except (ValueError, OSError):  # no moment; gone meanwhile
        return None
