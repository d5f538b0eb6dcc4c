"""A copy of another user's database, for root to read.

SQLite opens files by their paths, locks them, and writes beside them: all of it happens in a private folder.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryDirectory

from loopcanary.store.sqlite.files import FILE_NAME
from loopcanary.whose_folder import open_file

_SUFFIXES = ("", "-wal", "-journal")
"""The database first: the log then has all that was moved from it into the database meanwhile."""
_TRIES = 5
_BLOCK_BYTES = 1 << 20
_PAUSE_S = 1.0
"""At the least between two copies of one database, which take a tenth of the time at most."""


class LentCopy:
    """The files as they were at one moment. Raises OSError."""

    def __init__(self, place: str) -> None:
        """`place`: a path that leads to the open folder (`whose_folder.reach`)."""
        self._place = place
        self._holder = TemporaryDirectory(prefix="loopcanary-", ignore_cleanup_errors=True)
        self.path = Path(os.path.realpath(self._holder.name), FILE_NAME)
        began_s = time.monotonic()
        for _ in range(_TRIES):
            self._facts = self._all_facts()
            for suffix in _SUFFIXES:
                with suppress(FileNotFoundError):
                    self._copy(suffix)
            if self._all_facts() == self._facts:
                break
        took_s = time.monotonic() - began_s
        self._fresh_until_s = time.monotonic() + max(_PAUSE_S, 9 * took_s)

    def is_old(self) -> bool:
        """Whether the owner has written since, and a new copy may be made."""
        return time.monotonic() > self._fresh_until_s and self._all_facts() != self._facts

    def unlink(self) -> None:
        """Removes the names of the copy, so that it is gone when no process has it open, however this one
        ends."""
        self._holder.cleanup()

    def _copy(self, suffix: str) -> None:
        target = Path(f"{self.path}{suffix}")
        target.unlink(missing_ok=True)
        with (
            os.fdopen(open_file(f"{self._place}/{FILE_NAME}{suffix}"), "rb") as source,
            target.open("wb") as copy,
        ):
            left = os.fstat(source.fileno()).st_size
            if left > disk_usage(self._holder.name).free // 2:
                raise OSError(f"there is no space to copy it into {self._holder.name}")
            while left > 0 and (block := source.read(min(left, _BLOCK_BYTES))):
                copy.write(block)
                left -= len(block)

    def _all_facts(self) -> list[tuple[int, int, int]]:
        found: list[tuple[int, int, int]] = []
        for suffix in _SUFFIXES:
            try:
                facts = os.lstat(f"{self._place}/{FILE_NAME}{suffix}")
            except OSError:
                continue
            found.append((facts.st_ino, facts.st_size, facts.st_mtime_ns))
        return found
