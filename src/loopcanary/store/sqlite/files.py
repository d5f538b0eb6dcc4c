"""Files of the store: private modes, one process at a time where that matters, damage set aside."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from loopcanary.model.config import STORE_NAME
from loopcanary.unpatched import unpatched

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
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True)
    except FileExistsError:
        names = {path.name for path in folder.iterdir()}
        if folder.name != STORE_NAME or not names or names - _FIRST_NAMES:
            return
        # The engine made it a moment ago, for its flight file.
        folder.chmod(FOLDER_MODE)
    with suppress(OSError):
        descriptor = os.open(folder / ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        with os.fdopen(descriptor, "w") as file:
            file.write(_GITIGNORE)


def may_be_store(folder: Path) -> bool:
    """Whether the folder is a store's: what is there, if anything, was made by one."""
    try:
        names = {path.name for path in folder.iterdir()}
    except PermissionError:  # what opens it says so
        return True
    except OSError:
        return False
    return not names or bool(names & {FILE_NAME, *_FIRST_NAMES}) or _is_ours(folder / ".gitignore")


def _is_ours(gitignore: Path) -> bool:
    try:
        return gitignore.read_text(errors="replace") == _GITIGNORE
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

        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
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
