"""What followers of one store know of each other: which one sends what, and how that went.

In the store's folder `notifications`, for each way out: a lock, so that two of them do not send the same, and
a status for `loopcanary doctor`. The watched program asks, too.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

TYPE_CHECKING = False  # the watched program loads this, too
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FOLDER = "notifications"
LOG = "follower.log"
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
_STATUS_MAX = 4_096
_STARTING = "starting"
_STARTING_S = 30
_TRIES, _BETWEEN_S = 20, 0.05
"""Programs that begin take a claim for a moment, to see whether it is free."""


class Claim:
    """The right to send one kind of notifications of one store. Given back with the process."""

    def __init__(self, store: Path, channel: str) -> None:
        self._path = store / FOLDER / f"{channel}.lock"
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Whether it is ours now; always so where there are no locks, or no place for them."""
        try:
            import fcntl
        except ImportError:
            return True
        try:
            make_folder(self._path.parent)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        except OSError:
            return True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError:
            pass  # a filesystem without locks
        self._descriptor = descriptor
        return True

    def give_back(self) -> None:
        """Another process may take it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        with suppress(ImportError, OSError):
            import fcntl

            # Closing alone does not: a child that the program forked meanwhile has it, too.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def take_all(claims: Sequence[Claim], pause: Callable[[float], None] = time.sleep) -> bool:
    """Takes all claims or none; whether all are ours. Waits up to a second for programs that only look."""
    for last in (*(False,) * (_TRIES - 1), True):
        if all(claim.take() for claim in claims):
            return True
        for claim in claims:
            claim.give_back()
        if not last:
            pause(_BETWEEN_S)
    return False


def is_taken(store: Path, channel: str) -> bool:
    """Whether another process sends these notifications now."""
    claim = Claim(store, channel)
    free = claim.take()
    claim.give_back()
    return not free


def may_start(store: Path) -> bool:
    """Whether this process is to start the store's follower: workers of one program begin at the same
    moment, and one of them is enough. Raises OSError."""
    make_folder(store / FOLDER)
    path = store / FOLDER / _STARTING
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > _STARTING_S:
            path.unlink()  # it never came to life
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE))
    except FileExistsError:
        return False
    return True


def started(store: Path) -> None:
    """The follower is at work: its claims say so from now on."""
    with suppress(OSError):
        (store / FOLDER / _STARTING).unlink()


def make_folder(folder: Path) -> None:
    """Makes it for this user alone. Raises OSError."""
    folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)


def status_path(store: Path, channel: str) -> Path:
    """Where it is said how notifications of this kind went."""
    return store / FOLDER / f"{channel}.json"


def write_status(store: Path, channel: str, status: dict[str, Any]) -> None:
    """Replaces the status in one step; on a full disk the old one stays."""
    path = status_path(store, channel)
    aside = path.with_suffix(f".{os.getpid()}.new")
    with suppress(OSError):
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _FILE_MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(status, file)
        aside.replace(path)


def read_status(store: Path, channel: str) -> dict[str, Any] | None:
    """What was written last; None where nothing was, or it cannot be read."""
    try:
        with status_path(store, channel).open("rb") as file:
            status = json.loads(file.read(_STATUS_MAX))
    except (OSError, ValueError):
        return None
    return status if isinstance(status, dict) else None
