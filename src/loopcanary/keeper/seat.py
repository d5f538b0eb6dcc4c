"""The seat of a store's keeper: the lock that one process holds, its bell, and what it says of itself."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import stat
import struct
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from loopcanary import keeper as place
from loopcanary.whose_folder import open_file

LEFT_WALL_NS = "left_wall_ns"
"""Key of the status: when this keeper ended before what it watched, as it was asked to: a service or a
container may be about to end, and waits for all its processes."""
APART = "apart"
"""Key of the status: whether a program has started this keeper."""
LEAVE = "/leave"
"""A line that is rung: another keeper wants the seat. No flight file has such a name."""
_LEFT_LATELY_NS = 120_000_000_000
"""Longer than service managers wait."""
_STATUS_MAX = 1 << 20
_UNUSED_S = 30 * 86_400
_BYTES_AT_ONCE = 4_096
_RUNG_MAX = 1 << 20
"""The bytes that one turn hears: the next turn hears the rest."""
_WHOLE_FILE = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
"""struct flock of fcntl(2)."""


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
            fcntl.fcntl(lock, fcntl.F_OFD_SETLK, _WHOLE_FILE)
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
        left_ns = _read_status(Path(place.below(self.store, place.FOLDER)), place.key()).get(LEFT_WALL_NS)
        self.is_short = isinstance(left_ns, int) and 0 <= time.time_ns() - left_ns < _LEFT_LATELY_NS
        return True

    def ask_for(self) -> bool:
        """Asks the keeper that has it to give it back. False: no program has started that one, and it
        stays."""
        status = _read_status(Path(place.below(self.store, place.FOLDER)), place.key())
        if status.get(APART) is not True:
            return False
        with suppress(OSError):
            bell = os.open(
                place.bell_path(self.store), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
            )
            try:
                os.write(bell, f"{LEAVE}\n".encode())
            finally:
                os.close(bell)
        return True

    def give_back(self, *, to_another: bool = False) -> None:
        """Another process may take it: `to_another`: one that has asked for it, and starts at once. From now
        on nothing answers the bell."""
        if self._bell is not None and leads_to(place.bell_path(self.store), self._bell):
            # The mark keeps others from starting one at once (keeper_words.c).
            mark, bell = (Path(place.path_in_memory(self.store, one)) for one in (place.MARK, place.BELL))
            with suppress(OSError):
                if to_another:
                    mark.touch(place.FILE_MODE)
                else:
                    mark.unlink()
            with suppress(OSError):
                bell.unlink()
        # The bell first: the next one opens it anew.
        for descriptor in (self._bell, self._lock):
            if descriptor is not None:
                os.close(descriptor)
        self._bell = self._lock = None

    def is_there(self) -> bool:
        """Whether those who look for the keeper of this store find this one: its folder may be gone."""
        return all(
            descriptor is not None and leads_to(path, descriptor)
            for path, descriptor in (
                (place.path(self.store, place.LOCK), self._lock),
                (place.bell_path(self.store), self._bell),
            )
        )

    def hear(self) -> set[str]:
        """The lines that were rung until now: names of flight files."""
        rung = b""
        with suppress(BlockingIOError):
            while self._bell is not None and len(rung) < _RUNG_MAX:
                rung += os.read(self._bell, _BYTES_AT_ONCE)
        return set(os.fsdecode(rung).splitlines())

    def write_status(self, status: dict[str, Any]) -> None:
        """Replaces the status in one step; on a full disk the old one stays."""
        if status == self._written or self._lock is None:
            return
        path = Path(place.path(self.store, place.STATUS))
        aside = path.with_suffix(".new")
        with suppress(OSError):
            aside.unlink(missing_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(aside, flags, place.FILE_MODE), "w", encoding="utf-8") as file:
                json.dump(status, file)
            aside.replace(path)
            self._written = status


def statuses(store: str) -> list[dict[str, Any]]:
    """What the keepers that are at work say of themselves; {} of one that has not yet. Empty where
    the store's folder may not be read: it is another user's."""
    try:
        folder = Path(place.below(store, place.FOLDER, theirs=True))
        keys = sorted(path.stem for path in folder.iterdir() if path.suffix == f".{place.LOCK}")
    except OSError:
        return []
    return [_read_status(folder, one) for one in keys if _is_held(f"{folder}/{one}.{place.LOCK}")]


def _is_held(lock: str) -> bool:
    """Whether a process has this lock. To try to take it could keep a keeper that begins from doing so."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        found: bytes = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _WHOLE_FILE)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return struct.unpack_from("h", found) != (fcntl.F_UNLCK,)


def forget_unused(now_s: float) -> None:
    """Removes bells and marks of this user that were last used a month ago: of keepers that were killed, and
    of stores that are gone. `now_s`: as time.time()."""
    for ending in (place.BELL, place.MARK):
        for path in Path(place.memory).glob(f"loopcanary-*.{ending}"):
            with suppress(OSError):
                found = path.lstat()
                is_old = found.st_uid == os.geteuid() and now_s - found.st_mtime > _UNUSED_S
                if is_old and not (ending == place.BELL and place.is_heard(str(path))):
                    path.unlink()


def _read_status(folder: Path, of: str) -> dict[str, Any]:
    try:
        with os.fdopen(open_file(f"{folder}/{of}.{place.STATUS}"), "rb") as file:
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
    try:
        named, held = os.lstat(path), os.fstat(descriptor)
    except OSError:
        return False
    return (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)


_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LAST_S = 0.8
"""From the wish for its end to the end: what is not done then is done by the next keeper or command."""
_WOKEN_BYTES = 4_096


class Signals:
    """Once a process, main thread."""

    def __init__(self) -> None:
        self.is_end = False
        self._changed = False
        self._woken, wakes = socket.socketpair()
        self._wakes = wakes  # it would be closed else
        for one in (self._woken, wakes):
            one.setblocking(False)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGIO, self._note_change)
        signal.signal(signal.SIGALRM, _leave)
        for number in _ENDS:
            signal.signal(number, self._end)

    @property
    def descriptor(self) -> int:
        """Readable after a signal."""
        return self._woken.fileno()

    def folders_changed(self) -> bool:
        """Whether a folder that is followed has changed since the last call."""
        with suppress(BlockingIOError):
            while len(self._woken.recv(_WOKEN_BYTES)) == _WOKEN_BYTES:
                pass
        changed, self._changed = self._changed, False
        return changed

    def forgo_deadline(self) -> None:
        """All is given back. The interpreter, which is about to end, takes handlers back: the signal would
        end the process as one that was not asked to."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _note_change(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._changed = True

    def _end(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.is_end = True
        signal.setitimer(signal.ITIMER_REAL, _LAST_S)


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    os._exit(0)


class FollowedFolder:
    """A folder that is held open; SIGIO comes when a name in it is made, renamed or removed.

    By fcntl(2), F_NOTIFY: Python has no function for inotify. OSError where there is no such folder.
    """

    def __init__(self, path: Path, *, removals_only: bool = False) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        news = fcntl.DN_DELETE | (0 if removals_only else fcntl.DN_CREATE | fcntl.DN_RENAME)
        self.is_heard = True
        """False: this kernel or file system does not say."""
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_NOTIFY, news | fcntl.DN_MULTISHOT)
        except OSError:
            self.is_heard = False

    def is_at(self, path: Path) -> bool:
        """Whether the path still leads to it."""
        return leads_to(path, self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)
