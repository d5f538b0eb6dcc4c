"""Adds each issue to a file, as one line of JSON. Inside the watched program; standard library only.

Each line opens the file and closes it: a daemon closes what it finds open, and logrotate takes the name away.
Lines of several processes do not mix: each is one write to the end of the file.
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

from loopcanary.facts import is_ours
from loopcanary.model import Issue, Session, Stall
from loopcanary.whose_folder import place

_MODE = 0o600
_LINE_MAX = 16_384


class LogFile:
    """Writes issues as lines; makes the file with the first one. Drain thread."""

    name = "log file"

    def __init__(self, path: Path, *, process: str, host: str) -> None:
        self._path = path
        self._process = process
        self._host = host
        self._dropped = 0

    def report(self, issue: Issue, repeated: int) -> None:
        """Adds a line, or counts that it could not be written."""
        line = _line(issue, repeated, self._process, self._host)
        try:
            self._append(line)
        except OSError:
            self._dropped += 1

    def close(self, session: Session, stalls: Iterable[Stall]) -> None:
        """No file is open."""

    def counts(self) -> dict[str, int]:
        return {"log_file_dropped": self._dropped} if self._dropped else {}

    def _append(self, line: bytes) -> None:
        descriptor = _open(Path(place(str(self._path))), is_safe=is_ours(str(self._path)))
        try:
            _write(descriptor, line)
        finally:
            os.close(descriptor)


def _open(path: Path, *, is_safe: bool) -> int:
    """Opens the file for adding, or makes a private one. OSError: it is a pipe or a device, which can block;
    or another user can change the path, and it is not root's own file with one name."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", *(() if is_safe else ("O_NOFOLLOW",))):
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags, _MODE)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and (is_safe or (found.st_uid, found.st_nlink) == (0, 1)):
        return descriptor
    os.close(descriptor)
    raise OSError("it is not a file, or belongs to another user")


def _write(descriptor: int, line: bytes) -> None:
    written = os.write(descriptor, line)
    if written < len(line):  # the disk is full: half a line is useless, and would spoil the next
        with suppress(OSError):
            os.write(descriptor, b"\n")
        raise OSError("only a part of the line was written")


def _line(issue: Issue, repeated: int, process: str, host: str) -> bytes:
    facts = _facts(issue, repeated) | {"program": process, "host": host}
    line = json.dumps(facts, ensure_ascii=True)
    if len(line) >= _LINE_MAX:
        # Cuts endless names, so that the line stays JSON.
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
