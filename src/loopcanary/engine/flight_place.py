"""Where the flight file of this process lies, and how a later process finds it.

The file belongs in memory: a store to a page of a disk file can block in the kernel for as long as the
disk does (the JVM's hsperfdata pauses), and lanes are stored to from the thread that must not block. The
store's `flight` folder then holds a symbolic link to it. Without a tmpfs the file lies in that folder. Where
the store cannot be written, the file is in memory and has no name: no later process could find it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a tmpfs by definition of the kernel's documentation
SUFFIX = ".flight"
SAVED = ".saved"
"""Suffix of the copy that the watchdog makes on disk when a stall becomes a hang."""

_FORGOTTEN_S = 30 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightPlace:
    """One candidate: the file, and the link to it in the store (None where the file is in the store)."""

    path: Path
    link: Path | None
    is_nameless: bool = False
    """Its names are to be removed as soon as it is open: no later process is led to it."""

    @property
    def saved(self) -> Path | None:
        """Where evidence of hangs is copied to, so that it outlives the memory; None where the file is on
        disk anyway."""
        return None if self.link is None else self.link.with_suffix(SAVED)

    @property
    def in_memory(self) -> bool:
        """Whether page write-back can never reach the file."""
        return self.link is not None or self.is_nameless


def candidates(folder: Path, session_id: str, shared_memory: Path = SHARED_MEMORY) -> Iterator[FlightPlace]:
    """Places for the flight file of a session, best first. `folder`: the store's flight folder."""
    name = session_id + SUFFIX
    path = place_in_memory(os.geteuid(), name, shared_memory)
    has_memory = shared_memory.is_dir()
    if has_memory:
        yield FlightPlace(path=path, link=folder / name)
    yield FlightPlace(path=folder / name, link=None)
    if has_memory:
        yield FlightPlace(path=path, link=None, is_nameless=True)


def place_in_memory(user: int, name: str, shared_memory: Path = SHARED_MEMORY) -> Path:
    """Where the file lies to which a user's link of that name leads, and no other does."""
    return shared_memory / f"loopcanary-{user}-{name}"


def in_memory(shared_memory: Path = SHARED_MEMORY) -> list[Path]:
    """Flight files in shared memory: those of this user, and for root all."""
    try:
        owner = "*" if os.geteuid() == 0 else str(os.geteuid())
        return list(shared_memory.glob(f"loopcanary-{owner}-*{SUFFIX}"))
    except OSError:
        return []


def forgotten(now_s: float, shared_memory: Path = SHARED_MEMORY) -> list[Path]:
    """Flight files of this user that were made more than a month ago: of programs that still run, or of dead
    ones whose store is gone or never looked at again."""
    try:
        paths = list(shared_memory.glob(f"loopcanary-{os.geteuid()}-*{SUFFIX}"))
    except OSError:
        return []
    return [path for path in paths if _is_old_and_own(path, now_s)]


def _is_old_and_own(path: Path, now_s: float) -> bool:
    try:
        facts = path.lstat()
    except OSError:
        return False
    # Stores through a mapping leave the time of a file on tmpfs as it is.
    return facts.st_uid == os.geteuid() and now_s - facts.st_mtime > _FORGOTTEN_S


def prepare(place: FlightPlace) -> None:
    """Makes the store's flight folder and the link. OSError where they cannot be made."""
    if place.is_nameless:
        return
    folder = (place.link or place.path).parent
    for one in (folder.parent, folder):
        # The mode of `mkdir` is for the last folder only; the store's own is private, too.
        one.mkdir(mode=0o700, parents=True, exist_ok=True)
    if place.link is not None:
        place.link.symlink_to(place.path)


def discard(place: FlightPlace) -> None:
    """Removes the file and its link; what is not there is no error."""
    for path in (place.link, place.path, place.saved):
        if path is not None:
            with suppress(OSError):
                path.unlink()
