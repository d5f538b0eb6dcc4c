"""A process and its threads, as /proc shows them, and the errors of reading them: a sentence for people
each."""

from __future__ import annotations

import os
from pathlib import Path

from loopcanary.late_dataclass import dataclass


class OutsideError(Exception):
    """The process is not there, cannot be read, or ended meanwhile."""


class NotReadableError(OutsideError):
    """The kernel does not let this user read the process."""


class NotReachableError(OutsideError):
    """The process cannot run a script: its Python is too old, or its settings refuse."""


class HangsError(OutsideError):
    """The process did not answer in time."""


_PROC = Path("/proc")
_TICKS_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_COMMAND_BYTES = 4096
_GONE = (FileNotFoundError, ProcessLookupError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process by its number and the moment of its start, which together name it forever."""

    pid: int
    start_ticks: int
    proc: Path = _PROC

    @classmethod
    def of(cls, pid: int, proc: Path = _PROC) -> Process:
        """The process that has this number now. OutsideError: none that runs has it."""
        if not (proc / "self").exists():
            raise OutsideError(f"reading processes needs {proc}, which this system does not have")
        state, start = _state_and_start(proc, pid)
        if state in "ZXx":
            raise OutsideError(
                f"process {pid} has ended; it is a zombie until its parent asks for its exit status"
            )
        found = cls(pid=pid, start_ticks=start, proc=proc)
        if found.is_kernels:
            raise OutsideError(f"process {pid} is a kernel thread")
        return found

    @property
    def folder(self) -> Path:
        return self.proc / str(self.pid)

    @property
    def is_kernels(self) -> bool:
        """Whether it is a kernel thread, without memory of its own."""
        try:
            return not str((self.folder / "exe").readlink())
        except FileNotFoundError:  # also where it ends at this moment: then everything else says so
            return (self.folder / "status").exists()
        except OSError:
            return False

    def check(self) -> None:
        """Raises OutsideError if the process has ended, even if another one has its number now."""
        state, start = _state_and_start(self.proc, self.pid)
        if start != self.start_ticks or state in "ZXx":
            raise OutsideError(f"process {self.pid} ended while it was being read")

    def text(self, name: str) -> str:
        """A file of its folder; empty: it cannot be read."""
        try:
            return (self.folder / name).read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):
            return ""

    def words(self) -> list[str]:
        """Its command line, cut at some length."""
        try:
            with (self.folder / "cmdline").open("rb") as file:
                raw = file.read(_COMMAND_BYTES)
        except OSError:
            return []
        return [os.fsdecode(word) for word in raw.removesuffix(b"\0").split(b"\0")]

    def executable(self) -> str:
        """The path of its program, as the process has it; empty: unknown."""
        try:
            return str((self.folder / "exe").readlink())
        except OSError:
            return ""

    def age_ns(self) -> int | None:
        """How long it has been running."""
        try:
            up_s = float((self.proc / "uptime").read_text(encoding="ascii").split()[0])
        except (OSError, ValueError, IndexError):
            return None
        return max(int(up_s * 1e9) - self.start_ticks * 1_000_000_000 // _TICKS_S, 0)

    def inner_pid(self) -> int:
        """Its number in its own pid namespace, which it takes for its number."""
        return _inner_number(self.text("status"), self.pid)

    def inner_tids(self) -> dict[int, int]:
        """Its threads: from their numbers as the process has them to those here."""
        tids = [int(name) for name in _listed(self.folder / "task") if name.isdigit()]
        return {_inner_number(self.text(f"task/{tid}/status"), tid): tid for tid in tids}

    def refuse(self) -> NotReadableError:
        """Why the kernel may have refused to let it be read, and what would help."""
        try:
            owner = self.folder.stat().st_uid
        except OSError:
            return NotReadableError(f"process {self.pid} may not be read")
        if owner != os.geteuid():
            return NotReadableError(
                f"process {self.pid} belongs to {_user(owner)}: run the command as that user or with sudo"
            )
        scope = _number(self.proc / "sys/kernel/yama/ptrace_scope")
        if scope in (1, 2):
            return NotReadableError(
                f"the kernel does not let you read process {self.pid}: kernel.yama.ptrace_scope is {scope}."
                " Run the command with sudo, or allow it for all with `sysctl kernel.yama.ptrace_scope=0`"
            )
        if scope == 3:
            return NotReadableError(
                f"the kernel lets no process read process {self.pid}: kernel.yama.ptrace_scope is 3"
            )
        return NotReadableError(
            f"the kernel does not let you read process {self.pid}: run the command with sudo;"
            " in a container it needs the capability SYS_PTRACE"
        )


def _state_and_start(proc: Path, pid: int) -> tuple[str, int]:
    try:
        raw = (proc / str(pid) / "stat").read_bytes()
    except _GONE:
        raise OutsideError(f"there is no process {pid}") from None
    except OSError as error:
        raise OutsideError(f"process {pid} cannot be read: {error.strerror}") from error
    # The name in parentheses may hold anything (proc(5)): cut at the last one.
    fields = raw.rpartition(b")")[2].split()
    try:
        return fields[0].decode("ascii", "replace"), int(fields[19])
    except (IndexError, ValueError):
        raise OutsideError(f"process {pid} cannot be read: /proc/{pid}/stat is not as expected") from None


def _inner_number(status: str, otherwise: int) -> int:
    for line in status.splitlines():
        if line.startswith("NSpid:"):
            numbers = line.split()[1:]
            return int(numbers[-1]) if numbers and numbers[-1].isdigit() else otherwise
    return otherwise


def _listed(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _user(uid: int) -> str:
    import pwd  # not on every system

    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


_RUNNING = "running"
_NO_CALL = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A thread, with number and arguments of its system call; None: it is in none, or unknown."""

    tid: int
    name: str
    state: str
    call: tuple[int, tuple[int, ...]] | None = None
    is_running: bool = False
    """Whether it is on a CPU at this moment."""


def read_task(process: Process, tid: int) -> Task | None:
    """The thread now; None: it has ended."""
    state = process.text(f"task/{tid}/stat").rpartition(")")[2].strip()[:1]
    if not state or state in "ZXx":
        return None
    text = process.text(f"task/{tid}/syscall").strip()
    return Task(
        tid=tid,
        name=process.text(f"task/{tid}/comm").removesuffix("\n"),
        state=state,
        call=_call(text),
        is_running=text == _RUNNING,
    )


def _call(text: str) -> tuple[int, tuple[int, ...]] | None:
    words = text.split()
    try:
        number, arguments = int(words[0]), tuple(int(word, 16) for word in words[1:7])
    except (IndexError, ValueError):
        return None
    return None if number == _NO_CALL else (number, arguments)
