"""The seat of a store's keeper: the lock that one process holds, its bell, and what it says of itself."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from loopcanary import keeper as place

LEFT_WALL_NS = "left_wall_ns"
"""Key of the status: when this keeper ended before what it watched, as it was asked to: a service or a
container may be about to end, and waits for all its processes."""
_LEFT_LATELY_NS = 120_000_000_000
"""Longer than service managers wait."""
_STATUS_MAX = 1 << 20
_BYTES_AT_ONCE = 4_096


class Seat:
    """The right to keep one store, and the bell that is heard. Given back with the process."""

    def __init__(self, store: str) -> None:
        self.store = store
        self._lock: int | None = None
        self._bell: int | None = None
        self._written: dict[str, Any] | None = None
        self.is_short = False
        """The keeper before was asked to end a short while ago: this one is gone with what it watches."""

    @property
    def bell(self) -> int | None:
        """The bell's descriptor: readable when it was rung. None while the seat is not ours."""
        return self._bell

    def take(self) -> bool:
        """Whether it is ours now; False: another process has it. OSError where there can be none."""
        place.prepare(self.store)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(place.path(self.store, place.LOCK), flags, place.FILE_MODE)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Behind the lock: the bell of a keeper that is at work stays as it is.
            self._bell = _open_bell(place.bell_path(self.store))
        except BlockingIOError:
            os.close(lock)
            return False
        except BaseException:
            os.close(lock)
            raise
        self._lock = lock
        self._written = None
        left_ns = _read_status(self.store, place.key()).get(LEFT_WALL_NS)
        self.is_short = isinstance(left_ns, int) and 0 <= time.time_ns() - left_ns < _LEFT_LATELY_NS
        return True

    def give_back(self) -> None:
        """Another process may take it. From now on nothing answers the bell."""
        if self._lock is not None:
            with suppress(OSError):  # the time of its log keeps others from starting one (keeper_words.c)
                os.utime(place.log_path(self.store), (0, 0))
        # The bell first: the next one opens it anew.
        for descriptor in (self._bell, self._lock):
            if descriptor is not None:
                os.close(descriptor)
        self._bell = self._lock = None

    def is_there(self) -> bool:
        """Whether those who look for the keeper of this store find this one: its folder may be gone."""
        return all(
            descriptor is not None and leads_to(place.path(self.store, ending), descriptor)
            for ending, descriptor in ((place.LOCK, self._lock), (place.BELL, self._bell))
        )

    def hear(self) -> None:
        """Takes what was rung until now."""
        with suppress(BlockingIOError):
            while self._bell is not None and len(os.read(self._bell, _BYTES_AT_ONCE)) == _BYTES_AT_ONCE:
                pass

    def write_status(self, status: dict[str, Any]) -> None:
        """Replaces the status in one step; on a full disk the old one stays."""
        if status == self._written or self._lock is None:
            return
        path = Path(place.path(self.store, place.STATUS))
        aside = path.with_suffix(".new")
        with suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            with os.fdopen(os.open(aside, flags, place.FILE_MODE), "w", encoding="utf-8") as file:
                json.dump(status, file)
            aside.replace(path)
            self._written = status


def statuses(store: str) -> list[dict[str, Any]]:
    """What the keepers that are at work say of themselves; {} of one that has not yet. Empty where
    the store's folder may not be read: it is another user's."""
    try:
        keys = sorted(
            path.stem for path in Path(store, place.FOLDER).iterdir() if path.suffix == f".{place.BELL}"
        )
    except OSError:
        return []
    return [_read_status(store, one) for one in keys if place.is_heard(place.path(store, place.BELL, one))]


def _read_status(store: str, of: str) -> dict[str, Any]:
    try:
        with Path(place.path(store, place.STATUS, of)).open("rb") as file:
            status = json.loads(file.read(_STATUS_MAX))
    except (OSError, ValueError):
        return {}
    return status if isinstance(status, dict) else {}


def _open_bell(path: str) -> int:
    """Opened for writing, too: it never comes to its end while no program has it open."""
    flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
    with suppress(FileExistsError):
        os.mkfifo(path, place.FILE_MODE)
    descriptor = os.open(path, flags)
    found = os.fstat(descriptor)
    if stat.S_ISFIFO(found.st_mode) and found.st_uid == os.geteuid():
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EEXIST, "this file is not the keeper's; remove it", path)


def leads_to(path: Path | str, descriptor: int) -> bool:
    """Whether what is open has this path."""
    try:
        named, held = os.lstat(path), os.fstat(descriptor)
    except OSError:
        return False
    return (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)
