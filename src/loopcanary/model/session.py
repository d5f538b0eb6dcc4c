"""A session: one process that was watched, from start to end."""

from __future__ import annotations

import signal
from dataclasses import field
from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model.figures import TraceFigures
from loopcanary.model.spelling import NEEDED, spelled
from loopcanary.model.stack_frame import StackFrame


class SessionEnd(Enum):
    """How the process ended, as far as is known."""

    EXIT = "exit"
    KILLED = "killed"
    CRASHED = "crashed"
    """The process ended by a fault of its own."""
    RUNNING = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class KilledBy:
    """What ended a process. None: not known."""

    signal: str | None = None
    """Its name: `SIGKILL`."""
    pid: int | None = None
    """PID of the sender, as the process saw it; 0: the sender is outside the container."""
    uid: int | None = None
    """User id of the sender."""
    command: str | None = None
    """The sender's program."""
    reason: str | None = None
    """`cgroup: out of memory`, `gunicorn arbiter: worker timeout 30 s`."""


def signal_name(number: int) -> str:
    """`SIGTERM`; `signal 40` of one that has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityChange:
    """A call of the program that changed how a thread is scheduled: nice value, policy, or its cores."""

    call: str
    """As it was made: `os.nice(10)`."""
    file: str
    line: int
    function: str
    tid: int | None = None
    """The thread whose scheduling changed; None: all threads that the call names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """One pairing of the monotonic clock with the wall clock."""

    monotonic_ns: int
    wall_ns: int

    def to_wall_ns(self, monotonic_ns: int) -> int:
        """Wall time of a monotonic time of the same machine and boot."""
        return self.wall_ns + (monotonic_ns - self.monotonic_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopHealth:
    """Figures of one watched loop over its life. Delays: how long an event that arrives at a random
    moment waits, from exact busy intervals d in a window T: P(delay > x) = sum(max(0, d - x)) / T,
    mean = sum(d * d) / 2T."""

    thread: str
    """Its name."""
    kind: str
    """asyncio, uvloop, qt, thread, ..."""
    turns: int
    callbacks: int = field(metadata=spelled(absent=0))
    utilization: float
    """busy_ns / window_ns, 0 to 1."""
    busy_ns: int = field(metadata=spelled(absent=0))
    window_ns: int = field(metadata=spelled(absent=0))
    """How long the loop was watched."""
    delay_p50_ns: int = field(metadata=spelled(inside="delay_ms", name="p50"))
    delay_p99_ns: int = field(metadata=spelled(inside="delay_ms", name="p99"))
    delay_max_ns: int = field(metadata=spelled(inside="delay_ms", name="max"))
    delay_mean_ns: int = field(metadata=spelled(inside="delay_ms", name="mean"))
    delay_p90_ns: int = field(default=0, metadata=spelled(inside="delay_ms", name="p90"))
    delay_p999_ns: int = field(default=0, metadata=spelled(inside="delay_ms", name="p99_9"))
    queue_mean_ns: int = field(default=0, metadata=spelled(inside="queue_ms", name="mean"))
    queue_max_ns: int = field(default=0, metadata=spelled(inside="queue_ms", name="max"))
    stalls: int = 0
    stalled_ns: int = 0
    """Time of all its stalls that were stored or counted."""
    callback_weighted_ns: int | None = None
    """Time-weighted mean duration of callbacks: sum(d * d) / sum(d); None: callbacks are not seen."""
    slices: int = 0
    """Slices of 100 ms of the window."""
    slices_congested: int = 0
    """Slices in which an arriving event met a turn that had already lasted 100 ms; see LaneTotals."""
    gc_ns: int | None = None
    """Time of garbage collections on this thread; None: not measured."""
    run_queue_ns: int | None = None
    """Time in which the thread was runnable without a CPU; None: not measured."""
    histogram: tuple[tuple[int, int], ...] = field(default=(), metadata=spelled(row=("up_to_ns", "turns")))
    """(upper bound in ns, turns in the bucket) of the buckets that are not empty, ascending. It adds up over
    sessions, and gives the delay as it would be without some of the stalls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingTasks:
    """Tasks of asyncio that waited at the same places."""

    count: int
    name: str
    """Of one of them."""
    waits: str
    """`waits for an asyncio.Lock that refund holds`"""
    since_wall_ns: int | None = None
    """Since when that one has waited like this, at least; None: not known."""
    frames: tuple[StackFrame, ...] = ()
    """Innermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSurvey:
    """What the tasks of a process waited for when its watchdog looked last."""

    taken_wall_ns: int
    tasks: int
    """All there were."""
    groups: tuple[WaitingTasks, ...] = ()
    """Tasks that wait for each other first, then the main task, then the largest groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Facts of a watched process. Nothing that identifies a user unless the user configured it."""

    id: str
    name: str
    pid: int
    parent_pid: int = field(metadata=spelled(absent=0))
    host: str
    python: str
    """Implementation and version: `CPython 3.12.1`."""
    engine: str = field(metadata=spelled(absent="native"))
    """`native` or `portable`."""
    started_wall_ns: int
    ended_wall_ns: int | None = None
    """None: it runs, or its end is unknown."""
    end: SessionEnd = field(default=SessionEnd.RUNNING, metadata=NEEDED)
    threshold_ns: int = 0
    """A callback or turn that took longer was a stall."""
    version: str | None = None
    """Version of the program; None: not set."""
    labels: dict[str, str] = field(default_factory=dict)
    """The setting `labels`: names and values such as the deployment."""
    command: str = ""
    """The program as started: script or module; never its arguments."""
    machine: str = ""
    system: str = ""
    cores: int = 0
    memory_bytes: int = 0
    memory_limit_bytes: int | None = None
    """Of the cgroup; None: no limit."""
    cpu_limit: float | None = None
    """Cores granted by the cgroup's quota; None: no limit."""
    loops: tuple[LoopHealth, ...] = ()
    statistics: dict[str, int] = field(default_factory=dict)
    """The engine's own counters, by name."""
    priority_changes: tuple[PriorityChange, ...] = ()
    """The first calls of `os` that changed how a thread is scheduled, in order."""
    traces: TraceFigures = field(default_factory=TraceFigures, metadata=spelled(flat=True))
    """Frames, input and idle work."""
    imported_wall_ns: int | None = None
    """When it was imported from a bundle; None: it was watched for this store."""
    imported_from: str | None = None
    """Name of the bundle's file; None: it was not imported."""
    survey: TaskSurvey | None = None
    """None: its tasks were not looked at, or it ended well."""
    pid_namespace: int = 0
    """The PID namespace in which `pid` is valid; 0: not known."""

    @property
    def is_running(self) -> bool:
        """Whether the process runs, as far as is known. False for an imported session: its process may have
        ended since the bundle was made."""
        return self.end is SessionEnd.RUNNING and self.imported_wall_ns is None
