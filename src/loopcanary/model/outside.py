"""A process as `loopcanary dump` reads it from outside, at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model.spelling import spelled
from loopcanary.model.stack import Frame, Stack
from loopcanary.model.waiting import LockView, Target


class StackReading(Enum):
    """How the reading of a thread's frames went."""

    READ = "read"
    """Two readings agreed."""
    NO_FRAMES = "no frames"
    """The thread runs no Python code now."""
    MOVING = "moving"
    """The frames changed at every try: the thread is running Python code."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneSight:
    """What loopcanary's lane of a thread says, where the process is watched."""

    loop_kind: str = field(metadata=spelled(name="kind"))
    threshold_ns: int
    busy_ns: int | None = None
    """For how long the running callback, or the turn, has been running; None: the loop waits."""
    callback: str | None = None
    task: str | None = None
    scene: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitedLock:
    """The lock that a thread waits for. `holder_tid`: None if the holder is not known."""

    view: LockView
    holder_tid: int | None = None
    module: str | None = None
    """Of the lock of an import."""
    has_timeout: bool = False
    """The wait ends by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSight:
    """A thread of the process at that moment."""

    tid: int
    name: str
    """As loopcanary's lane or the kernel has it; empty where that is only the program's name."""
    is_main: bool
    state: str
    """Letter of /proc/PID/stat: R S D T t; empty: unknown."""
    syscall: str | None = None
    """Name, or number, of the system call it is in; None: in none, or unknown."""
    target: Target | None = None
    interpreter: int | None = 0
    """Number of its interpreter, the main one first; None: it has never run Python."""
    reading: StackReading = StackReading.NO_FRAMES
    stack: Stack | None = None
    holds_gil: bool = False
    waits_for_gil: bool = False
    lock: WaitedLock | None = None
    lane: LaneSight | None = None


class TaskState(Enum):
    """What a task of asyncio does."""

    WAITS = "waits"
    READY = "ready"
    """It will go on when its loop comes to it."""
    NOT_BEGUN = "not begun"
    RUNS = "runs"
    MOVING = "moving"
    """Two readings did not agree: it goes on all the time."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWait:
    """What a task waits for. Another task is its place in `ProcessSight.tasks`."""

    what: str
    """`an asyncio.Lock`, `a future`"""
    target: Target | None = None
    """The peer of a connection, or the child process, where that is known."""
    task: int | None = None
    """The task whose end it waits for."""
    holders: tuple[int, ...] = ()
    """The tasks that are inside an `async with` block of the lock or semaphore."""
    has_timeout: bool = False
    """The wait ends by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSight:
    """A task of asyncio at that moment."""

    name: str
    is_main: bool
    """A loop runs until it ends."""
    loop: int
    """Number of its loop, as they were found."""
    state: TaskState
    wait: TaskWait | None = None
    """None: it does not wait, or moved while it was read."""
    frames: tuple[Frame, ...] = ()
    """What it awaits, innermost first."""
    truncated: bool = False
    """There are more inner frames than are read."""
    count: int = 1
    """How many tasks wait like this one, with it; 0: another of them says."""
    since_ns: int | None = None
    """Since when it has waited like this, at least: monotonic; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSight:
    """The process, its threads with the main one first."""

    pid: int
    command: str
    executable: str
    python: str
    """`3.12.1`"""
    age_ns: int | None
    taken_wall_ns: int
    threads: tuple[ThreadSight, ...]
    tasks: tuple[TaskSight, ...] | None = None
    """Those of asyncio; None: they were not looked at."""
    session: str | None = None
    """Id of loopcanary's session in it; None: it is not watched."""
    notes: tuple[str, ...] = ()
    """What could not be seen, and why."""
    sources: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Text of lines of inner frames, by file and number; of files that are as they were when it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """Why a process cannot be read, or reached, in a sentence.

    `is_refused`: the kernel forbids it to this user, or the process is of a kind that cannot be read.
    `hangs`: the process did not come to carry out the request.
    """

    why: str
    is_refused: bool = False
    hangs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """A process is watched from now on, or has been before."""

    pid: int
    was_watched: bool
    is_running: bool
    """Whether its engine runs; else it starts with the process's first loop."""
    engine: str
    session: str
    store: str
    native_problem: str | None = None
    """Why the native engine does not run there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detached:
    """A process is not watched any longer, or was not before."""

    pid: int
    was_watched: bool
