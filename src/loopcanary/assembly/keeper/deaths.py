"""What ended a watched process, as far as a keeper can know: noted while it lives, asked when it is over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from loopcanary.keeper.exits import signal_of
from loopcanary.model import KilledBy, Stall
from loopcanary.words.endings import killed_by_words

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
    """Of one process. `proc`, `cgroup`: where these are mounted."""

    def __init__(self, pid: int, parent_pid: int, *, proc: Path = _PROC, cgroup: Path = _CGROUP) -> None:
        """Reads what is gone with the process. Raises nothing."""
        self.status: int | None = None
        """As `wait` has it; None: not known."""
        self.ended_ns: int | None = None
        """When that was seen, monotonic; None: not known."""
        self._parent = _words(proc / str(parent_pid) / "cmdline")
        self._gunicorn = _gunicorn_timeout(proc, parent_pid, self._parent)
        self._watchdog_us = _environment(proc / str(pid)).get("WATCHDOG_USEC", "")
        self._kills_in = _kill_counts(_read(proc / str(pid) / "cgroup"), cgroup)
        self._kills = self._count_kills()
        self.exit_when_hung_ns = 0
        """The program's setting."""

    def look(self) -> None:
        """In a hang: what its group lost before was not this one."""
        self._kills = self._count_kills()

    def in_stall(self, stall: Stall) -> KilledBy | None:
        """What is known of the end of a process that was killed in this stall, which has what its own signals
        say. None: nothing."""
        ended_by, seen = signal_of(self.status), stall.killed_by
        if ended_by is None:
            return seen
        reason = self._reason(ended_by, stall.duration_ns / _S)
        if seen is None:
            return KilledBy(signal=ended_by, reason=reason)
        if seen.signal == ended_by:
            return replace(seen, reason=reason or seen.reason)
        before = f"{killed_by_words(seen)} came before" if seen.signal else seen.reason
        return KilledBy(signal=ended_by, reason="; ".join(filter(None, (reason, before))) or None)

    def _reason(self, ended_by: str, stalled_s: float) -> str | None:
        if ended_by == "SIGKILL" and self._kills is not None and (self._count_kills() or 0) > self._kills:
            return "cgroup: out of memory"
        if ended_by not in ("SIGKILL", "SIGABRT"):
            return None
        limit_s = self.exit_when_hung_ns / _S
        if ended_by == "SIGABRT" and 0 < limit_s <= stalled_s:
            return f"loopcanary: a turn of {limit_s:g} s (exit_when_hung)"
        if self._gunicorn is not None and stalled_s >= self._gunicorn / _HALF:
            return f"gunicorn arbiter: worker timeout {self._gunicorn} s"
        if ended_by == "SIGABRT" and self._watchdog_us.isdigit() and _is_systemd(self._parent):
            return f"systemd watchdog: no sign of life for {int(self._watchdog_us) / 1e6:g} s"
        return None

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
    """Of a file in /proc whose words end with NUL."""
    return [word for word in _read(path).decode("utf-8", "replace").split("\0") if word]


def _read(path: Path) -> bytes:
    """Empty where it cannot be read."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(_LARGEST_BYTES)
    return b""
