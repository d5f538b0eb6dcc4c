"""A folder with the requests for a script in another process, and its answers.

It lies in the process's own /tmp, which may not be ours, and belongs to its user; no other user can enter it.
That user may put links there, which would lead anywhere in our root: no link is followed, and what was opened
once is used. There are

    script.py      what the process runs
    waiting        renamed to `taken` by the script, which does nothing where it cannot: it was withdrawn
    request.json   what to do
    answer.json    what came of it

A request that was withdrawn leaves the script behind, since the process will open it as soon as it can; the
script then removes the folder.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from contextlib import suppress
from typing import Any

from loopcanary.outside.processes import OutsideError, Process

SCRIPT, WAITING, TAKEN, REQUEST, ANSWER = "script.py", "waiting", "taken", "request.json", "answer.json"
_PLACES = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - a folder of mode 0700 is made there
_ANSWER_BYTES = 1 << 16


class Mailbox:
    """One request to one process."""

    def __init__(self, process: Process, script: str, request: dict[str, Any]) -> None:
        """Leaves a script, in whose text `{folder!r}` stands for the folder. OutsideError."""
        self._name = f"loopcanary-attach-{process.pid}-{secrets.token_hex(4)}"
        self._is_withdrawn = False
        self._place, self._here, self.folder = self._make(process)
        """`folder`: as the process sees it."""
        try:
            owner = process.folder.stat()
            self._write(SCRIPT, script.replace("{folder!r}", repr(self.folder)), owner)
            self._write(REQUEST, json.dumps(request), owner)
            self._write(WAITING, "", owner)
            _give(self._here, owner)
        except OSError as error:
            self.close()
            raise OutsideError(f"no request can be written to {self.folder}: {error.strerror}") from error

    @property
    def script(self) -> str:
        """The path of the script, as the process sees it."""
        return f"{self.folder}/{SCRIPT}"

    @property
    def is_taken(self) -> bool:
        """Whether the process has begun to run the script."""
        try:
            os.stat(TAKEN, dir_fd=self._here, follow_symlinks=False)
        except OSError:
            return False
        return True

    def answer(self) -> dict[str, Any] | None:
        """The script's answer; None: there is none yet. Anything else becomes an error in it."""
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            descriptor = os.open(ANSWER, flags, dir_fd=self._here)
        except OSError:
            return None
        try:
            # Its user may have put anything there: a pipe has nothing yet, a folder cannot be read.
            raw = os.read(descriptor, _ANSWER_BYTES) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
        except OSError:
            raw = b""
        finally:
            os.close(descriptor)
        with suppress(ValueError, RecursionError):
            found = json.loads(raw)
            if isinstance(found, dict):
                return found
        return {"error": "the answer of the process cannot be read"}

    def withdraw(self) -> bool:
        """Takes the request back; False: the process has already taken it."""
        with suppress(OSError):
            os.rename(WAITING, "withdrawn", src_dir_fd=self._here, dst_dir_fd=self._here)
            self._is_withdrawn = True
        return self._is_withdrawn

    def close(self) -> None:
        """Removes the folder; after `withdraw` the script, which is still to run, does that."""
        if not self._is_withdrawn:
            for name in (SCRIPT, WAITING, TAKEN, REQUEST, ANSWER, f"{ANSWER}.new"):
                with suppress(OSError):
                    os.unlink(name, dir_fd=self._here)
            with suppress(OSError):
                os.rmdir(self._name, dir_fd=self._place)
        os.close(self._here)
        os.close(self._place)

    def _make(self, process: Process) -> tuple[int, int, str]:
        """Makes the folder: descriptors of its place and of itself, and its path."""
        problem = ""
        for path in _PLACES:
            try:
                place = _opened(process, path)
            except OSError as error:
                problem = error.strerror or ""
                continue
            try:
                os.mkdir(self._name, 0o700, dir_fd=place)
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                return place, os.open(self._name, flags, dir_fd=place), f"{path}/{self._name}"
            except OSError as error:
                os.close(place)
                problem = error.strerror or ""
        process.check()
        raise OutsideError(f"no request for process {process.pid} can be written to its /tmp: {problem}")

    def _write(self, name: str, text: str, owner: os.stat_result) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=self._here), "w", encoding="utf-8") as file:
            _give(file.fileno(), owner)
            file.write(text)


def _opened(process: Process, path: str) -> int:
    """A folder in the process's root."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    folder = os.open(process.folder / "root", flags)
    for name in path.split("/")[1:]:
        outer = folder
        try:
            folder = os.open(name, flags | os.O_NOFOLLOW, dir_fd=outer)
        finally:
            os.close(outer)
    return folder


def _give(descriptor: int, owner: os.stat_result) -> None:
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
