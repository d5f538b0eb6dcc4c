"""A stall with its verdict: what reports show and stores keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import Enum
from typing import ClassVar

from loopcanary.late_dataclass import dataclass
from loopcanary.model.calls import TracedCalls
from loopcanary.model.config import ANR_NS, HANG_NS
from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.session import KilledBy
from loopcanary.model.spelling import spelled
from loopcanary.model.stack_frame import StackFrame
from loopcanary.model.timeline import Timeline
from loopcanary.model.waiting import Contributor, LockProof, StateWord, Target


class StallScope(Enum):
    """What was too long: one callback; or a turn as a whole, or its part before or after such a callback.
    Of a crash also that the thread was in neither."""

    CALLBACK = "callback"
    TURN = "turn"
    THREAD = "thread"


class StallState(Enum):
    """Whether the stall is over, goes on, or ended with the process: by a signal, or a fault of its own."""

    ENDED = "ended"
    ONGOING = "ongoing"
    KILLED = "killed"
    CRASHED = "crashed"

    @property
    def is_of_process(self) -> bool:
        """Whether the process ended with it."""
        return self in (StallState.KILLED, StallState.CRASHED)


class Severity(Enum):
    """Stall: over the threshold. Hang: 1 s and more. ANR: 5 s and more."""

    STALL = "stall"
    HANG = "hang"
    ANR = "anr"


def severity_of(duration_ns: int) -> Severity:
    if duration_ns >= ANR_NS:
        return Severity.ANR
    return Severity.HANG if duration_ns >= HANG_NS else Severity.STALL


_ALIKE = 1 / 4
"""Two threads that hold the GIL alike have half each; on a busy machine one had 28 % of the other's."""


class Cause(Enum):
    """Why the thread was blocked."""

    CPU = "cpu"
    NATIVE_CPU = "native-cpu"
    GIL = "gil"
    SLEEP = "sleep"
    LOCK = "lock"
    DISK_IO = "disk-io"
    NETWORK_IO = "network-io"
    DNS = "dns"
    SUBPROCESS = "subprocess"
    GC = "gc"
    IMPORT = "import"
    BURST = "burst"
    HOST = "host"
    CRASH = "crash"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """The frame that the user can change: innermost own frame that held most of the stall."""

    function: str
    """Last part of `qualname`."""
    qualname: str = field(metadata=spelled(like="function"))
    """Qualified name: `Orders.load`."""
    file: str
    """Path as the code object has it."""
    line: int
    """Line of the call, from 1; 0 unknown."""
    source: str | None
    """The line of source, stripped; None where the file cannot be read or has changed."""
    in_app: bool
    """False: no frame of the program's own code was on the stack; this is the innermost frame."""
    column: int = 0
    """Where the call is in `source`: 1-based character columns, 0 unknown."""
    end_column: int = 0


def culprit_at(frame: StackFrame) -> Culprit:
    """The frame's line, without its source."""
    return Culprit(
        function=frame.function,
        qualname=frame.qualname,
        file=frame.file,
        line=frame.line,
        source=None,
        in_app=frame.in_app,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """What the culprit was doing: the call as written, and the function that was reached."""

    call: str | None
    """Source text of the call, such as `json.loads(body)`; None: unknown."""
    function: str | None
    """Qualified name of the innermost frame below the culprit; None: the culprit called C directly, or no one
    function for most of its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The thread that held the GIL, or the lock, for which the stalled thread waited."""

    thread: str
    """Its name."""
    culprit: Culprit | None
    """The frame that held it; None: its frames were not read."""
    share: float = 1.0
    """Part of the stall's seen time, 0 to 1."""
    lock: str | None = None
    """Type of the lock; None: the GIL."""
    proof: LockProof | None = None
    """How the holder is known; None: the GIL names it."""

    @property
    def is_ours(self) -> bool:
        """Whether it is loopcanary's own work that held it."""
        return self.culprit is None and is_own_thread(self.thread)


def chief_holders(holders: Sequence[Holder]) -> tuple[Holder, ...]:
    """For each place that held more than a quarter as long as the longest, the thread that held most there.
    In the order of the places: which of them held longer is chance."""
    held: dict[tuple[str, str], float] = {}
    first: dict[tuple[str, str], Holder] = {}
    for holder in holders:
        if holder.culprit is not None:
            place = (holder.culprit.file, holder.culprit.qualname)
            held[place] = held.get(place, 0) + holder.share
            first.setdefault(place, holder)
    least = max(held.values(), default=0) * _ALIKE
    return tuple(first[place] for place in sorted(held) if held[place] > least)


def is_own_thread(name: str) -> bool:
    """Whether a thread of this name is one of loopcanary's."""
    return name.startswith("loopcanary-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Where the wall time went. None: not measured. What is known sums to the stall's duration; `gc_ns` is a
    part of `on_cpu_ns`."""

    on_cpu_ns: int | None = None
    """The thread ran."""
    gil_wait_ns: int | None = None
    """It waited for the GIL."""
    run_queue_ns: int | None = None
    """It was ready, and the host did not run it."""
    blocked_ns: int | None = None
    """It waited for anything else."""
    gc_ns: int | None = None
    """It collected garbage."""
    error_ns: int | None = None
    """No entry is further from the truth than this; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """A part of a stall that has a culprit and cause of its own."""

    share: float
    """Part of the seen time, 0 to 1."""
    cause: Cause
    culprit: Culprit | None
    """None: no frame could be read."""
    blocker: Blocker | None
    """None: unknown."""


class Grade(Enum):
    """How far the samples carry the verdict."""

    STRONG = "strong"
    FAIR = "fair"
    WEAK = "weak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What machine, container and process did while the stall lasted. None: not measured."""

    window_ns: int
    """The time between the two readings that the others are differences of."""
    system_cpu: float | None = None
    """Share of all cores that was busy, 0 to 1."""
    stolen_cpu: float | None = None
    """Share of this busy time in which a hypervisor ran other machines, 0 to 1."""
    process_cpu: float | None = None
    """Cores that this process used."""
    throttled_ns: int | None = None
    """Time for which the cgroup's quota kept it from running."""
    pressure_cpu: float | None = None
    """Share of the window in which something waited for a core (PSI, `some`)."""
    pressure_memory: float | None = None
    """The same for memory."""
    pressure_io: float | None = None
    """The same for a disk."""
    major_faults: int | None = None
    """Pages that the stalled thread had to read from a disk."""
    voluntary_switches: int | None = None
    """How often the stalled thread began to wait."""
    involuntary_switches: int | None = None
    """How often the host took the core from it."""
    memory_available_bytes: int | None = None
    """Of the machine, at the end."""
    memory_used_bytes: int | None = None
    """Of the cgroup, at the end."""
    nice: int | None = None
    """Of the stalled thread, at the end, as the next two: -20 to 19, where more is less."""
    policy: str | None = None
    """By which it is scheduled: `other` as usual, `batch`, `idle`, `fifo`, `rr`, `deadline`."""
    cores: int | None = None
    """On how many it may run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedStack:
    """One of the different stacks that were seen."""

    weight_ns: int
    """Time of the stall that it held."""
    truncated: bool = False
    """Outer frames were left out."""
    frames: tuple[StackFrame, ...]
    """Innermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadView:
    """A thread of the process when the stall became a hang."""

    tid: int
    """As the kernel numbers it."""
    name: str
    state: str
    """Letter of /proc/TID/stat: R S D T t Z; empty: unknown."""
    holds_gil: bool
    waits_for_gil: bool
    frames: tuple[StackFrame, ...]
    """Innermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """One stall, judged. Contract 7.3 is its JSON form (loopcanary.wire)."""

    id: str
    """Unique over sessions: `<session>-<serial>`."""
    fingerprint: str
    """The same for the same bug, in every run, on every host."""
    session: str
    """Id of its session."""
    pid: int
    thread: str
    """Name of the thread."""
    loop: str
    """Kind of loop: asyncio, uvloop, thread, ..."""
    kind: ClassVar[IssueKind] = IssueKind.STALL
    title: str = field(metadata=spelled(absent=""))
    """One line for people."""
    scope: StallScope = field(metadata=spelled(absent=StallScope.CALLBACK))
    state: StallState
    severity: Severity
    began_wall_ns: int
    duration_ns: int
    """To the end; of one that goes on or was killed, to when it was last seen."""
    threshold_ns: int
    """What was too long."""
    queue_ns: int = 0
    """How late its callback began."""
    callback: str | None = field(metadata=spelled(inside="callback", name="name"))
    """Name of the callback; None: unknown, or the turn stalled."""
    task: str | None = field(metadata=spelled(inside="callback"))
    """Name of the task that it ran for; None: none, or unknown."""
    scene: str | None
    """Where the user was; None: the program did not say."""
    cause: Cause
    confidence: float
    """Of the cause, 0 to 1."""
    evidence: tuple[str, ...]
    """Sentences: what the verdict rests on."""
    advice: str | None
    """What would help; None: nothing is known to."""
    culprit: Culprit | None
    """None: no frame was read, or the cause strikes any code."""
    blocker: Blocker | None
    """None: unknown."""
    holder: Holder | None
    """The first of `holders`; None: the thread waited for no lock and not for the GIL."""
    ledger: Ledger
    samples: int
    """Readings of the thread."""
    coverage: float
    """Share of the duration that the samples with a stack saw, 0 to 1."""
    dropped_samples: int
    """Readings that were lost."""
    stacks: tuple[WeightedStack, ...]
    """Most time first."""
    threads: tuple[ThreadView, ...] = ()
    """All threads, when it became a hang; empty: it did not."""
    engine: str = "native"
    """`native` or `portable`."""
    cause_share: float = 1.0
    """Part of the seen time that the cause explains, 0 to 1."""
    second_cause: Cause | None = None
    """None: no other cause has a share of 25 %."""
    second_share: float = 0.0
    """Part of the seen time that it explains, 0 to 1."""
    portions: tuple[Portion, ...] = ()
    """Of a mixed stall, largest first; empty: one culprit and cause explain it."""
    grade: Grade = Grade.FAIR
    holders: tuple[Holder, ...] = ()
    """All that held what the thread waited for, most time first."""
    waited_on: Target | None = None
    """None: it waited for no file, socket, process or the like."""
    contributors: tuple[Contributor, ...] = ()
    """Of a turn: its callbacks by name, most time first."""
    surroundings: Surroundings | None = None
    """None: not measured."""
    startup: bool = False
    """It was before the loop first waited."""
    timeline: Timeline | None = None
    """None if the writer of the stall kept none."""
    calls: TracedCalls | None = None
    """What its thread called in it, exactly; None: calls were not traced."""
    state_word: StateWord | None = None
    """Of a hang and longer; None: it is shorter."""
    killed_by: KilledBy | None = None
    """What ended the process in it; None: it did not end, or that is not known."""

    @property
    def blamed_holder(self) -> Holder | None:
        """The thread whose code is the bug: it held the GIL or the lock, and its line is known."""
        if self.cause not in (Cause.GIL, Cause.LOCK) or self.holder is None or self.holder.culprit is None:
            return None
        return self.holder

    @property
    def blamed(self) -> Culprit | None:
        """The line to change: the holder's, where that of the thread that waited is chance."""
        return self.culprit if self.blamed_holder is None else self.blamed_holder.culprit

    @property
    def stalls(self) -> tuple[str, ...]:
        """None: it is made of no other stall."""
        return ()

    @property
    def searched(self) -> tuple[str | None, ...]:
        """Callback, task, and the call that blocked."""
        blocker = self.blocker
        return (self.callback, self.task, *((blocker.call, blocker.function) if blocker is not None else ()))

    @property
    def felt_ns(self) -> int:
        """The duration."""
        return self.duration_ns

    @property
    def is_news(self) -> bool:
        """Always: every stall is reported."""
        return True


__all__ = [
    "ANR_NS",
    "HANG_NS",
    "Blocker",
    "Cause",
    "Culprit",
    "Holder",
    "Ledger",
    "Severity",
    "StackFrame",
    "Stall",
    "StallScope",
    "StallState",
    "ThreadView",
    "WeightedStack",
]
