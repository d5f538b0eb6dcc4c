"""What ended a watched process, as far as a keeper can know: noted while it lives, asked when it is over."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from loopcanary.keeper.exits import signal_of
from loopcanary.model import KilledBy, Stall
from loopcanary.source_text import SourceReader
from loopcanary.words.endings import killed_by_words, with_reason

_PROC = Path("/proc")
_CGROUP = Path("/sys/fs/cgroup")
_OOM = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)
_GUNICORN_S = 30
"""Its default."""
_TIMEOUT = re.compile(r"(?:^| )(?:--timeout[ =]|-t ?)(\d+)(?= |$)")
_CONFIG = re.compile(r"(?:^| )(?:--config[ =]|-c ?)")
_HALF = 2
"""An arbiter counts from its worker's last sign of life, which async workers give twice in the time."""
_S = 1_000_000_000
_LARGEST_BYTES = 1 << 16


class Death:
    """The death of one process. `proc`, `cgroup`: where these are mounted."""

    def __init__(self, pid: int, parent_pid: int, *, proc: Path = _PROC, cgroup: Path = _CGROUP) -> None:
        """Reads the facts that are gone when the process has ended. Raises nothing."""
        self.status: int | None = None
        """Status as `wait` returns it; None: not known."""
        self.ended_ns: int | None = None
        """When the keeper saw the end, monotonic; None: not known."""
        self.sources: SourceReader | None = None
        """What is quoted of the process; None: what anything is quoted of."""
        self._parent_pid = parent_pid
        self._parent_at = proc / str(parent_pid) / "cmdline"
        self._parent = _words(self._parent_at)
        self._gunicorn = _gunicorn_timeout(proc, parent_pid, self._parent)
        self._watchdog_us = _environment(proc / str(pid)).get("WATCHDOG_USEC", "")
        self._kills_in = _kill_counts(_read(proc / str(pid) / "cgroup"), cgroup)
        self._kills = self._count_kills()
        self.exit_when_hung_ns = 0
        """The program's setting."""

    def look(self) -> None:
        """Counts the kills in its group during a hang: earlier kills were not those of this process."""
        self._kills = self._count_kills()

    def in_stall(self, stall: Stall) -> KilledBy | None:
        """How the process ended that was killed in this stall; the stall has what the process noted of its
        signals. None: unknown."""
        ended_by, seen = signal_of(self.status), stall.killed_by
        if ended_by is None and self.status is not None:
            status = os.waitstatus_to_exitcode(self.status)
            return with_reason(seen, f"exit status {status}: the program ended itself, as by os._exit")
        if ended_by is None:
            return seen
        reason = self._reason(ended_by, seen, stall.duration_ns / _S)
        if seen is None:
            return KilledBy(signal=ended_by, reason=reason)
        if seen.signal == ended_by:
            return replace(seen, reason=reason or seen.reason)
        before = f"{killed_by_words(seen)} came before" if seen.signal else seen.reason
        return KilledBy(signal=ended_by, reason="; ".join(filter(None, (reason, before))) or None)

    def _reason(self, ended_by: str, seen: KilledBy | None, stalled_s: float) -> str | None:
        if ended_by == "SIGKILL" and self._kills is not None and (self._count_kills() or 0) > self._kills:
            return "cgroup: out of memory"
        if ended_by not in ("SIGKILL", "SIGABRT"):
            return None
        limit_s = self.exit_when_hung_ns / _S
        if ended_by == "SIGABRT" and 0 < limit_s <= stalled_s:
            return f"loopcanary: a turn of {limit_s:g} s (exit_when_hung)"
        if self._is_by_arbiter(ended_by, seen, stalled_s):
            return f"gunicorn arbiter: worker timeout {self._gunicorn} s"
        if ended_by == "SIGABRT" and self._watchdog_us.isdigit() and _is_systemd(self._parent):
            return f"systemd watchdog: no sign of life for {int(self._watchdog_us) / 1e6:g} s"
        return None

    def _is_by_arbiter(self, ended_by: str, seen: KilledBy | None, stalled_s: float) -> bool:
        """The arbiter sends SIGABRT when a worker's time is over, and SIGKILL a second later. A SIGKILL
        without that is somebody else's, or that of an arbiter that ends itself."""
        if self._gunicorn is None or stalled_s < self._gunicorn / _HALF:
            return False
        if not self._parent or _words(self._parent_at) != self._parent:
            return False
        if ended_by == "SIGABRT":
            return seen is None or seen.pid in (None, self._parent_pid)
        if seen is None:
            return False
        if seen.signal is not None:
            return (seen.signal, seen.pid) == ("SIGABRT", self._parent_pid)
        sent = re.match(r"SIGABRT came .* \(pid (\d+)\)$", seen.reason or "")
        return sent is not None and int(sent[1]) == self._parent_pid

    def _count_kills(self) -> int | None:
        if self._kills_in is None:
            return None
        found = _OOM.search(_read(self._kills_in))
        return None if found is None else int(found[1])


def _kill_counts(groups: bytes, cgroup: Path) -> Path | None:
    """The file that counts what was killed for lack of memory in the process's group."""
    for line in groups.decode("utf-8", "replace").splitlines():
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        for path in _of_group(cgroup, controllers, group.strip("/")):
            if _OOM.search(_read(path)):
                return path
    return None


def _of_group(cgroup: Path, controllers: str, group: str) -> Iterator[Path]:
    """In a container the group's path may be the host's; its own group is at the top then."""
    if ".." in group.split("/"):
        group = ""
    if not controllers:
        yield cgroup / group / "memory.events"
        yield cgroup / "memory.events"
    elif "memory" in controllers.split(","):
        yield cgroup / "memory" / group / "memory.oom_control"
        yield cgroup / "memory" / "memory.oom_control"


def _gunicorn_timeout(proc: Path, pid: int, command: Sequence[str]) -> int | None:
    """Seconds, where the parent is an arbiter, and its timeout is certain; None: else."""
    if not any(Path(word).name == "gunicorn" or word.startswith("gunicorn:") for word in command[:3]):
        return None
    given = " ".join([_environment(proc / str(pid)).get("GUNICORN_CMD_ARGS", ""), *command])
    asked = _TIMEOUT.findall(given)
    if asked:
        return int(asked[-1])
    is_elsewhere = _CONFIG.search(given) or (proc / str(pid) / "cwd" / "gunicorn.conf.py").exists()
    return None if is_elsewhere else _GUNICORN_S


def _is_systemd(command: Sequence[str]) -> bool:
    return bool(command) and Path(command[0]).name in ("systemd", "init")


def _environment(process: Path) -> dict[str, str]:
    entries = (word.partition("=") for word in _words(process / "environ"))
    return {name: value for name, _, value in entries}


def _words(path: Path) -> list[str]:
    """The words of a file in /proc, each of which ends with NUL."""
    return [word for word in _read(path).decode("utf-8", "replace").split("\0") if word]


def _read(path: Path) -> bytes:
    """Empty where it cannot be read."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(_LARGEST_BYTES)
    return b""
