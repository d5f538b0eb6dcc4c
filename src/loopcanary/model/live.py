"""Watched processes as their flight files have them at one moment: what `loopcanary top` is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model.evidence import LaneTotals
from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.session import Session
from loopcanary.model.stall import Stall


class Life(Enum):
    """Whether the process runs, or how it ended."""

    RUNS = "runs"
    EXITED = "exited"
    """It ended by itself."""
    KILLED = "killed"
    UNKNOWN = "unknown"
    """It belongs to another pid namespace, and nothing shows whether it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Names of the work that a thread runs. None: the work has no such name, or it was not read."""

    callback: str | None = None
    task: str | None = None
    scene: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneReading:
    """A lane that a thread has or had, at one moment."""

    totals: LaneTotals
    threshold_ns: int
    allowance_ns: int = 0
    """What `expect` grants to the callback that runs."""
    callback_since_ns: int | None = None
    """None outside a callback, and where it changed while it was looked at."""
    turn_since_ns: int | None = None
    """Since a callback of the turn was judged alone, if one was; None outside a turn."""
    turn_callbacks: int = 0
    """Callbacks of the running turn that are over. The totals do not contain them yet."""
    in_stall: bool = False
    """The watchdog has found the present work to be a stall."""
    last_look_ns: int = 0
    """When the watchdog last saw the stall going on; 0: it has not looked."""
    latest_stall_ns: int | None = None
    """Duration of the latest stall that is over, as its own thread recorded it; None: no stall is over."""
    work: Work | None = None
    """The names are known only if the work has run for longer than the sample delay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReading:
    """A process at one moment. Times are monotonic, of the machine's present boot where it runs."""

    key: str
    """Identifies the process: the same at every reading, and different for every process."""
    session: Session
    life: Life
    is_near: bool
    """Whether its PID is valid here, in the reader's PID namespace, so that the reader can look at the
    process."""
    at_ns: int
    """When the process was read; if it has ended, when it was last seen alive."""
    at_wall_ns: int
    lanes: tuple[LaneReading, ...]
    last: Mapping[int, Stall] = field(default_factory=dict)
    """The latest diagnosed stall of each lane."""
    store: str | None = None
    """Folder of its store; None: unknown."""


_NO_LOOP = "thread"
"""The kind of a lane of work on a thread without a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopProgress:
    """A loop, and whether it makes progress."""

    thread: str
    kind: str
    busy_ns: int
    """For how long it has been in its present turn, without what `expect` grants; 0: it waits for events."""
    callback: str | None = None
    """Name of the running callback; None: the loop waits, or the name is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramProgress:
    """The loops of a program that runs."""

    name: str
    pid: int
    started_ns: int
    """Monotonic."""
    is_stopped: bool
    """By a signal, such as SIGSTOP."""
    loops: tuple[LoopProgress, ...]
    hang: IssueKind | None = None
    """The kind of hang, if the program does not start or does not end; None: it has no such hang."""
    hang_ns: int = 0
    """For how long."""
    deadlock: tuple[str, ...] = ()
    """Names of tasks that wait for each other."""
    has_dead_main: bool = False
    """The main task is one of them, or can go on only when one of them does."""

    def stuck(self, limit_ns: int) -> tuple[LoopProgress, ...]:
        """Loops that have been in one turn for longer than `limit_ns`; all loops if the program is
        stopped."""
        return tuple(loop for loop in self.loops if self.is_stopped or loop.busy_ns > limit_ns)

    def is_healthy(self, limit_ns: int, *, deadlocks: bool = False) -> bool:
        """Whether the program is not stopped, no loop is stuck, and its main task is in no deadlock;
        `deadlocks`: nor any other task."""
        is_dead = self.has_dead_main or (deadlocks and bool(self.deadlock))
        return not (self.is_stopped or is_dead or self.stuck(limit_ns))


def progress_of(lanes: Iterable[LaneReading], at_ns: int) -> tuple[LoopProgress, ...]:
    """The progress of each loop that is not closed. `at_ns`: when the lanes were read, monotonic."""
    return tuple(
        LoopProgress(
            thread=lane.totals.thread_name,
            kind=lane.totals.loop_kind,
            busy_ns=_busy_ns(lane, at_ns),
            callback=None if lane.work is None else lane.work.callback,
        )
        for lane in lanes
        if lane.totals.closed_ns is None and lane.totals.loop_kind != _NO_LOOP
    )


def _busy_ns(lane: LaneReading, at_ns: int) -> int:
    since_ns = lane.callback_since_ns if lane.turn_since_ns is None else lane.turn_since_ns
    return 0 if since_ns is None else max(0, at_ns - since_ns - lane.allowance_ns)
