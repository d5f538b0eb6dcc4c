"""The flight folder of a store, held open.

Where another user may write, its path, or a link in it, can lead elsewhere a moment after it was looked at.
So names are looked up, renamed and removed in the folder that was opened, and a link leads to a file of its
owner with the name that files in memory have, or nowhere.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from loopcanary.late_dataclass import dataclass
from loopcanary.model.hang_halves import HANG
from loopcanary.model.method_map import remove_beside
from loopcanary.whose_folder import REACHED

FLIGHT = ".flight"
SAVED = ".saved"
"""Suffix of the copy on disk that a native engine makes of a hang, beside the link to its file in memory."""
CLAIMED = ".claimed"

_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_ENTRY = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_NONBLOCK", 0) | _NO_LINK


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A name in the folder."""

    name: str
    owner: int
    changed_s: float
    """When it was made, written or renamed."""
    path: Path
    """The file itself: the engine keeps it in memory where it can, and a link to it here."""
    file: os.stat_result | None
    """None where there is none."""

    @property
    def is_ours(self) -> bool:
        """Whether it may be taken in and removed: root does not for other users either."""
        return self.owner == os.geteuid()

    @property
    def identity(self) -> tuple[int, int] | None:
        return None if self.file is None else _identity(self.file)

    def forget(self) -> None:
        """Removes the file in memory, unless another one has its path now, after what lies beside it."""
        remove_beside(str(self.path).removesuffix(CLAIMED))
        with suppress(OSError):
            if _identity(self.path.lstat()) == self.identity:
                self.path.unlink()


class FlightFolder:
    """A context manager."""

    def __init__(self, path: Path, place: Callable[[int, str], Path], *, lender: int = 0) -> None:
        """`place`: where the file of a user's link of that name usually lies. `lender`: the user whose store
        root only reads. OSError where there is no folder, or a link to one."""
        self._place = place
        self._lender = lender
        # In /proc/self/fd each name is a link, to a folder that is open.
        flags = _FOLDER & ~_NO_LINK if f"{path.parent}/" == REACHED else _FOLDER
        self._descriptor = os.open(path, flags)
        self._path = Path(f"{REACHED}{self._descriptor}") if lender else path
        self._identity = _identity(os.fstat(self._descriptor))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # A program may close descriptors that it did not open, and get the number for a file of its own.
        with suppress(OSError):
            if _identity(os.fstat(self._descriptor)) == self._identity:
                os.close(self._descriptor)

    def names(self) -> list[str]:
        """Names of the files that are to be looked at, in order."""
        try:
            names = os.listdir(self._descriptor)  # noqa: PTH208 - pathlib has no descriptors
        except OSError:
            return []
        return sorted(name for name in names if name.endswith((FLIGHT, SAVED, HANG, CLAIMED)))

    def find(self, name: str) -> Entry | None:
        """The entry with this name; None if there is none any more."""
        try:
            descriptor = os.open(name, _ENTRY, dir_fd=self._descriptor)
        except OSError:
            return None
        try:
            facts = os.fstat(descriptor)
            if stat.S_ISLNK(facts.st_mode):
                path, file = self._target(os.readlink("", dir_fd=descriptor), facts.st_uid, name)
            else:
                path, file = self._path / name, facts
        except OSError:  # a sandbox may refuse to read a link that is open
            return None
        finally:
            os.close(descriptor)
        owner = self._lender or facts.st_uid
        return Entry(name=name, owner=owner, changed_s=facts.st_ctime, path=path, file=file)

    def claim(self, name: str) -> str | None:
        """Its new name, which says that it is taken; None where another recovery was faster."""
        # A claim was left by a recovery that did not live to its end: twice does no harm.
        return name if name.endswith(CLAIMED) else self._rename(name, name + CLAIMED)

    def give_back(self, claim: str) -> None:
        """Leaves what was claimed for the next recovery."""
        self._rename(claim, claim.removesuffix(CLAIMED))

    def set_aside(self, name: str) -> str | None:
        """Its new name, which no recovery looks at; None where another one was faster."""
        return self._rename(name, f"{name}.unreadable-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")

    def link(self, name: str) -> bool:
        """Makes the link to this user's file of that name in memory, unless something has the name, or a
        recovery has it in hand. Whether it did. OSError where there is no such file."""
        path = self._place(os.geteuid(), name)
        facts = path.lstat()
        is_ours = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid()
        if not is_ours or self.find(name) or self.find(name + CLAIMED):
            return False
        os.symlink(path, name, dir_fd=self._descriptor)
        return True

    def remove(self, *names: str) -> None:
        for name in names:
            with suppress(OSError):
                os.unlink(name, dir_fd=self._descriptor)

    def _target(self, target: str, owner: int, name: str) -> tuple[Path, os.stat_result | None]:
        path = self._place(owner, name.removesuffix(CLAIMED))
        elsewhere = Path(target)
        if elsewhere.is_absolute() and elsewhere.name == path.name:
            path = elsewhere  # its folder is a setting of the program: `flight_dir`
            with suppress(OSError):
                facts = path.lstat()
                return path, facts if facts.st_uid == owner else None
        return path, None

    def _rename(self, name: str, new: str) -> str | None:
        try:
            os.rename(name, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except OSError:
            return None
        return new


def _identity(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino
