"""Threads of a process as the kernel sees them."""

from __future__ import annotations

from loopcanary.late_dataclass import dataclass
from loopcanary.outside.processes import Process

_RUNNING = "running"
_NO_CALL = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One thread. `call`: number and arguments of the system call it is in; None: in none, or unknown."""

    tid: int
    name: str
    state: str
    call: tuple[int, tuple[int, ...]] | None = None
    is_running: bool = False
    """On a CPU at this moment."""


def read_task(process: Process, tid: int) -> Task | None:
    """The thread now; None where it has ended."""
    state = _state(process.text(f"task/{tid}/stat"))
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


def _state(stat: str) -> str:
    return stat.rpartition(")")[2].strip()[:1]


def _call(text: str) -> tuple[int, tuple[int, ...]] | None:
    words = text.split()
    try:
        number, arguments = int(words[0]), tuple(int(word, 16) for word in words[1:7])
    except (IndexError, ValueError):
        return None
    return None if number == _NO_CALL else (number, arguments)
