"""Leaves the hangs of this process in a file, for who reads the store after it was killed.

Written by system calls rather than through a mapping: a store to a mapped page waits for the disk with the
GIL held, and ends the program where the disk is full (SIGBUS). The kernel keeps either for the next reader,
whatever becomes of the process. No descriptor is kept to write by: a program that closes all of them may have
given its number to a file of its own.
"""

from __future__ import annotations

import json
import os
import stat
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from loopcanary.facts import moved_up, pid_namespace
from loopcanary.model.evidence import StallEvidence
from loopcanary.model.hang_halves import HALF_BYTES, PAYLOAD_BYTES, TEXT_BYTES, half
from loopcanary.unpatched import unpatched
from loopcanary.wire import to_wire

_FLAGS = os.O_RDWR | os.O_CREAT
for _name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY", "O_NOINHERIT"):
    _FLAGS |= getattr(os, _name, 0)
_SAMPLES = (32, 8, 1)
"""How many samples of a hang are written, and as many threads; fewer where those have no room."""


class HangFile:
    """The file is there while there is something in it. Raises nothing; any thread may be held up by the
    disk, and none holds the GIL meanwhile."""

    def __init__(self, path: str | None, clock: Callable[[], int]) -> None:
        """Makes nothing yet. `path`: None: nothing is left."""
        self.facts: dict[str, Any] = {}
        """Of the session, on the wire."""
        self._path = None if path is None else Path(path)
        self._writes = self._failures = 0
        self._clock = clock
        self._started_ns = clock()
        self._writer: dict[str, Any] = {}
        self._hangs: dict[int, StallEvidence] = {}
        self._lock = unpatched("_thread", "allocate_lock")()
        self._held: tuple[int, os.stat_result] | None = None
        """The descriptor by which the file is locked, and the file."""

    def note(self, evidence: StallEvidence) -> None:
        """A hang goes on, or one that was noted has ended. Watchdog thread."""
        if self._path is not None and (evidence.end_ns is None or evidence.serial in self._hangs):
            with self._lock:
                self._hangs[evidence.serial] = evidence
                self._renew(self._path)

    def forget(self, *serials: int) -> None:
        """These have ended and are stored; none: all that shall be is stored. The drain."""
        if self._path is not None and (not serials or self._hangs.keys() & serials):
            with self._lock:
                self._hangs = {one: self._hangs[one] for one in self._hangs if serials and one not in serials}
                self._renew(self._path)

    def counts(self) -> dict[str, int]:
        """How often it was written, and how often that failed."""
        return {"hang_notes": self._writes, "hang_note_faults": self._failures}

    def let_go(self) -> None:
        """In a forked child: the file is the parent's, and so is its lock."""
        # A thread that was not forked may have held it.
        self._lock = unpatched("_thread", "allocate_lock")()
        self._hangs = {}
        self._unlock()

    def _renew(self, path: Path) -> None:
        try:
            if self._hangs:
                self._write(path)
            elif self._held is not None:
                # Before the lock is free: who finds the file unlocked takes it for a dead process's.
                with suppress(FileNotFoundError):
                    if os.path.samestat(path.lstat(), self._held[1]):
                        path.unlink()
                self._unlock()
        except Exception:  # noqa: BLE001 - the boundary: the program goes on without the file
            self._failures += 1

    def _write(self, path: Path) -> None:
        data = half(self._writes, self._payload())
        for folder in (path.parent.parent, path.parent):  # the mode is for the last folder only
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Before the next open, which may get the number of a descriptor that the program has closed.
        if not self._holds(path):
            self._unlock()
        descriptor = moved_up(os.open(path, _FLAGS, 0o600))
        try:
            file = os.fstat(descriptor)
            if not stat.S_ISREG(file.st_mode) or (hasattr(os, "geteuid") and file.st_uid != os.geteuid()):
                raise OSError("not a file of ours")
            if self._held is None:
                _lock(descriptor)
                self._held = descriptor, file
            os.lseek(descriptor, self._writes % 2 * HALF_BYTES, os.SEEK_SET)
            if os.write(descriptor, data) != len(data):
                raise OSError("the disk is full")
            self._writes += 1
        finally:
            if self._held is None or self._held[0] != descriptor:
                os.close(descriptor)

    def _payload(self) -> bytes:
        if not self._writer:
            self._writer = _this_process(self._started_ns, self._clock())
        for most in _SAMPLES:
            hangs = [to_wire(_with_at_most(most, one)) for one in self._hangs.values()]
            told = {"writer": self._writer, "facts": self.facts, "hangs": hangs}
            text = json.dumps(told).encode()
            payload = zlib.compress(text, 1)
            if len(payload) <= PAYLOAD_BYTES and len(text) <= TEXT_BYTES:
                return payload
        raise ValueError("one sample has no room")

    def _holds(self, path: Path) -> bool:
        """Whether the file at the path is locked, by a descriptor that the program has not closed."""
        try:
            return self._held is not None and os.path.samestat(os.fstat(self._held[0]), path.lstat())
        except OSError:
            return False

    def _unlock(self) -> None:
        if self._held is not None:
            (descriptor, file), self._held = self._held, None
            # Not what the program has opened since, where it closed this one.
            with suppress(OSError):
                if os.path.samestat(os.fstat(descriptor), file):
                    os.close(descriptor)


def _lock(descriptor: int) -> None:
    """By which a reader without /proc, or in another PID namespace, knows that the process lives.

    BlockingIOError: another has the lock."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock

        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        raise
    except (ImportError, OSError):
        pass  # Windows; a filesystem without such locks


def _with_at_most(most: int, evidence: StallEvidence) -> StallEvidence:
    """The evidence with so many of its samples and threads; the samples cover the whole of it still."""
    step = -(-len(evidence.samples) // most) or 1
    return replace(
        evidence,
        samples=evidence.samples[::-step][::-1],
        sample_interval_ns=evidence.sample_interval_ns * step,
        threads=evidence.threads[:most],
    )


def _this_process(started_ns: int, now_ns: int) -> dict[str, Any]:
    stat = _read("/proc/self/stat").rpartition(")")[2].split()
    return {
        "pid": os.getpid(),
        "parent_pid": os.getppid(),
        "process_start": int(stat[19]) if stat else 0,
        "pid_namespace": pid_namespace(),
        "boot_id": _read("/proc/sys/kernel/random/boot_id").strip(),
        "started_ns": started_ns,
        "paired_ns": now_ns,
        "wall_ns": time.time_ns(),
    }


def _read(path: str) -> str:
    """Empty where there is no such file."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
