"""Whether the process of a flight file still runs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Final

from loopcanary.flight.header import FlightHeader

_PROC: Final = Path("/proc")
_PID_LIMIT: Final = 1 << 22  # PID_MAX_LIMIT of Linux
_DEAD_STATES: Final = ("Z", "X", "x")


class Liveness(Enum):
    """Whether a process lives, as far as it can be known here."""

    RUNNING = "running"
    DEAD = "dead"
    UNKNOWABLE = "unknowable"
    """It belongs to another pid namespace, boot or host, or this system does not say."""


def liveness(header: FlightHeader, *, same_host: bool = False, proc: Path = _PROC) -> Liveness:
    """Whether the process that the header names runs now.

    A pid is compared together with the process's start time, since pids are reused; both mean
    something within one pid namespace and one boot only. `same_host`: the caller knows that the file
    is of this host, so another boot id means that the host was started anew and the process is dead.
    `proc`: where procfs is mounted.
    """
    boot_id = _read_text(proc / "sys/kernel/random/boot_id").strip()
    if not boot_id or not header.boot_id:
        return Liveness.UNKNOWABLE
    if boot_id != header.boot_id:
        return Liveness.DEAD if same_host else Liveness.UNKNOWABLE
    if header.pid_namespace == 0 or header.pid_namespace != _own_pid_namespace(proc):
        return Liveness.UNKNOWABLE
    if not 0 < header.pid <= _PID_LIMIT:
        return Liveness.UNKNOWABLE
    return _of_pid(header.pid, header.process_start, proc)


def holds_lock(path: Path) -> bool | None:
    """Whether some process holds the writer's lock on the file. If so it lives, in whichever pid
    namespace.

    None where that cannot be found out (no such lock on this filesystem, a file that cannot be opened).
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    else:
        return False
    finally:
        os.close(descriptor)


@contextmanager
def hold_lock(path: Path) -> Iterator[bool]:
    """Holds the writer's lock on the file of a dead process in this block. False: another process has it.
    True, too, where there is no such lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        yield True
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_free = True
    except BlockingIOError:
        is_free = False
    except OSError:
        is_free = True
    try:
        yield is_free
    finally:
        os.close(descriptor)


def maps(pid: int, file: str) -> bool | None:
    """Whether the process has the file in its memory; None where it cannot be asked."""
    try:
        return os.fsencode(os.path.basename(file)) in Path(f"/proc/{pid}/maps").read_bytes()  # noqa: PTH119
    except OSError:
        return None


def stores_to(pid: int, file: str) -> bool:
    """Whether the process has the file in its memory to store to, as its writer has, and no reader."""
    name = os.fsencode(os.path.basename(file))  # noqa: PTH119
    try:
        mappings = Path(f"/proc/{pid}/maps").read_bytes().splitlines()
    except OSError:
        return False
    return any(b" rw-s " in one and name in one for one in mappings)


def _of_pid(pid: int, start: int, proc: Path) -> Liveness:
    try:
        text = (proc / str(pid) / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return Liveness.UNKNOWABLE if _is_hidden(pid) else Liveness.DEAD
    except OSError:
        return Liveness.UNKNOWABLE
    # The name in parentheses may hold anything, ") 1 2" included (proc(5)): cut at the last one.
    fields = text.rpartition(b")")[2].split()
    try:
        state, threads, started = fields[0].decode("ascii", "replace"), int(fields[17]), int(fields[19])
    except (IndexError, ValueError):
        return Liveness.UNKNOWABLE
    if start == 0:
        return Liveness.UNKNOWABLE
    if started != start:
        return Liveness.DEAD
    # A zombie waits for its parent only, unless just its main thread is gone and others run.
    return Liveness.DEAD if state in _DEAD_STATES and threads <= 1 else Liveness.RUNNING


def _is_hidden(pid: int) -> bool:
    """Whether a process that /proc does not show is there all the same (mount option hidepid)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _own_pid_namespace(proc: Path) -> int:
    try:
        return (proc / "self/ns/pid").stat().st_ino
    except OSError:
        return -1


def _read_text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""
