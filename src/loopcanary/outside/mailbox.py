"""A folder by which a script in another process is told what to do, and answers.

It lies in the process's own /tmp, which may not be ours, and belongs to its user; nobody else can enter it.
There are

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
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from loopcanary.outside.errors import OutsideError
from loopcanary.outside.processes import Process

SCRIPT, WAITING, TAKEN, REQUEST, ANSWER = "script.py", "waiting", "taken", "request.json", "answer.json"
_PLACES = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - made by mkdtemp, mode 0700
_ANSWER_BYTES = 1 << 16


class Mailbox:
    """One request to one process."""

    def __init__(self, process: Process, script: str, request: dict[str, Any]) -> None:
        """`script`: its text, in which `{folder!r}` stands for the folder. Raises OutsideError."""
        self._root = process.folder / "root"
        self.folder = self._make(process)
        """As the process sees it."""
        self._here = Path(f"{self._root}{self.folder}")
        try:
            self._write(SCRIPT, script.replace("{folder!r}", repr(self.folder)))
            self._write(REQUEST, json.dumps(request))
            self._write(WAITING, "")
            self._give_to_owner(process)
        except OSError as error:
            self.close()
            raise OutsideError(f"no request can be left in {self._here}: {error.strerror}") from error

    @property
    def script(self) -> str:
        """Path of the script, as the process sees it."""
        return f"{self.folder}/{SCRIPT}"

    @property
    def is_taken(self) -> bool:
        """Whether the process has begun to run the script."""
        return (self._here / TAKEN).exists()

    def answer(self) -> dict[str, Any] | None:
        """What the script has answered; None where it has not yet. What is no answer is an error in it."""
        try:
            descriptor = os.open(
                self._here / ANSWER, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            )
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            raw = file.read(_ANSWER_BYTES)
        with suppress(ValueError, RecursionError):
            found = json.loads(raw)
            if isinstance(found, dict):
                return found
        return {"error": "the process gave an answer that cannot be read"}

    def withdraw(self) -> bool:
        """Takes the request back; False where the process has already taken it."""
        try:
            (self._here / WAITING).rename(self._here / "withdrawn")
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Removes the folder. Not after `withdraw`: the script is still to be run."""
        shutil.rmtree(self._here, ignore_errors=True)

    def _make(self, process: Process) -> str:
        problem = ""
        prefix = f"loopcanary-attach-{process.pid}-"
        for place in _PLACES:
            try:
                made = tempfile.mkdtemp(prefix=prefix, dir=f"{self._root}{place}")
            except OSError as error:
                problem = error.strerror or ""
                continue
            return f"{place}/{made.rpartition('/')[2]}"
        process.check()
        raise OutsideError(f"no request can be left for process {process.pid} in its /tmp: {problem}")

    def _write(self, name: str, text: str) -> None:
        (self._here / name).write_text(text, encoding="utf-8")

    def _give_to_owner(self, process: Process) -> None:
        owner = process.folder.stat()
        if os.geteuid() != 0 or owner.st_uid == 0:
            return
        for path in (*self._here.iterdir(), self._here):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
