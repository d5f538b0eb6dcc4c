"""Which descriptors SQLite holds on the store, and whether they still are what they were.

A program may close descriptors that it did not open (a daemon closes them all), and the next file of its own
gets their numbers: SQLite would write into it, and close it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from loopcanary.facts import is_short_of_descriptors
from loopcanary.store.errors import StoreError

if TYPE_CHECKING:
    import sqlite3

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
