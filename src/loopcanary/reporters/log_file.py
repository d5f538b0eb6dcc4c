"""Adds each issue to a file, as one line of JSON. Inside the watched program; standard library only.

The file is opened for each line and closed again: a daemon closes what it finds open, and another tool's
rotation takes the name away. Lines of several processes do not mix: each is one write to the end of the
file.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loopcanary.model import Issue, Session, Stall

_MODE = 0o600
_LINE_MAX = 16_384
_TRIES = 10
_OLD = ".1"
"""Suffix of the file before."""


class LogFile:
    """Issues as lines. Drain thread. Nothing is made before the first issue."""

    name = "log file"

    def __init__(self, path: Path, size_max: int, *, process: str, host: str) -> None:
        self._path = path
        self._size_max = size_max
        self._process = process
        self._host = host
        self._dropped = 0

    def report(self, issue: Issue, repeated: int) -> None:
        """Adds a line. OSError never: what cannot be written is counted."""
        line = _line(issue, repeated, self._process, self._host)
        try:
            self._append(line)
        except OSError:
            self._dropped += 1

    def close(self, session: Session, stalls: Iterable[Stall]) -> None:
        """Nothing is open."""

    def counts(self) -> dict[str, int]:
        """For statistics()."""
        return {"log_file_dropped": self._dropped} if self._dropped else {}

    def _append(self, line: bytes) -> None:
        for _ in range(_TRIES):
            if self._appended(line):
                return
        raise OSError("it is full, and so is each that takes its place")

    def _appended(self, line: bytes) -> bool:
        """False where the file was renamed, by us or by others, as it is full."""
        descriptor = _open(self._path)
        try:
            if os.fstat(descriptor).st_size + len(line) > self._size_max and self._rotate(descriptor):
                return False
            _write(descriptor, line)
            return True
        finally:
            os.close(descriptor)

    def _rotate(self, descriptor: int) -> bool:
        """Renames the file, one process at a time; False where it stays: it is empty, or another process is
        about to. OSError where it cannot be done: then it grows no further."""
        found = os.fstat(descriptor)
        if not found.st_size:
            return False
        try:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False  # the line goes into whichever file this is
        except (ImportError, OSError):
            pass  # no locks here
        with suppress(FileNotFoundError):
            named = self._path.lstat()
            if (named.st_dev, named.st_ino) == (found.st_dev, found.st_ino):
                self._path.replace(f"{self._path}{_OLD}")
        return True


def _open(path: Path) -> int:
    """For adding, private where it is new. A pipe, a device or the like is refused: they can block."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY"):
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags, _MODE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is no file")
    return descriptor


def _write(descriptor: int, line: bytes) -> None:
    written = os.write(descriptor, line)
    if written < len(line):  # the disk is full: half a line is useless, and would spoil the next
        with suppress(OSError):
            os.write(descriptor, b"\n")
        raise OSError("it was not written whole")


def _line(issue: Issue, repeated: int, process: str, host: str) -> bytes:
    facts = _facts(issue, repeated) | {"program": process, "host": host}
    line = json.dumps(facts, ensure_ascii=True)
    if len(line) >= _LINE_MAX:
        # Names without end: what is long is cut, and the line stays JSON.
        cut = {key: value[:500] if isinstance(value, str) else value for key, value in facts.items()}
        line = json.dumps(cut, ensure_ascii=True)
    return line.encode() + b"\n"


def _facts(issue: Issue, repeated: int) -> dict[str, Any]:
    culprit = issue.culprit
    facts: dict[str, Any] = {
        "at": _rfc3339(issue.began_wall_ns),
        "kind": issue.kind.value,
        "id": issue.id,
        "fingerprint": issue.fingerprint,
        "repeated": repeated,
        "title": issue.title,
        "duration_ms": round(issue.duration_ns / 1e6, 3),
        "cause": issue.cause.value,
        "file": None if culprit is None else culprit.file,
        "line": None if culprit is None else culprit.line,
        "function": None if culprit is None else culprit.qualname,
        "scene": issue.scene,
        "thread": issue.thread,
        "loop": issue.loop,
        "pid": issue.pid,
        "advice": issue.advice,
    }
    if isinstance(issue, Stall):
        facts |= {
            "state": issue.state.value,
            "severity": issue.severity.value,
            "confidence": round(issue.confidence, 3),
            "task": issue.task,
            "callback": issue.callback,
        }
    return facts


def _rfc3339(wall_ns: int) -> str:
    seconds, nanoseconds = divmod(wall_ns, 1_000_000_000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{nanoseconds // 1_000_000:03}Z"
