"""A stall with its diagnosis, as reports show it and stores keep it."""

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
    """What took too long: a callback, or a turn, or the part of a turn before or after a stalled callback.
    THREAD: a crash of a thread outside of callbacks and turns."""

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
        """Whether the process ended during the stall."""
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
    """The frame to change: the innermost function of own code that was running for most of the stall."""

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
    """Qualified name of the innermost frame below the culprit; None: the culprit called C code directly, or
    no single function for most of its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The thread that held the GIL, or the lock, for which the stalled thread waited."""

    thread: str
    """Its name."""
    culprit: Culprit | None
    """The frame that held it; None: its frames were not read."""
    share: float = 1.0
    """Share of the sampled time in which it held the GIL or lock, 0 to 1."""
    lock: str | None = None
    """Type of the lock; None: the GIL."""
    proof: LockProof | None = None
    """How the holder is known; None: the GIL names it."""

    @property
    def is_ours(self) -> bool:
        """Whether it is loopcanary's own work that held it."""
        return self.culprit is None and is_own_thread(self.thread)


def chief_holders(holders: Sequence[Holder]) -> tuple[Holder, ...]:
    """For each place in the code, the thread that held most there. Places that held less than a quarter as
    long as the longest are left out. The order is that of the places, since it is chance which one held
    longest."""
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
    """Where the stall's time went. None: not measured. The measured times add up to the stall's duration;
    `gc_ns` is a part of `on_cpu_ns`."""

    on_cpu_ns: int | None = None
    """Time in which the thread ran."""
    gil_wait_ns: int | None = None
    """Time in which it waited for the GIL."""
    run_queue_ns: int | None = None
    """Time in which it was runnable without a CPU."""
    blocked_ns: int | None = None
    """Time in which it waited for anything else."""
    gc_ns: int | None = None
    """Time in which it collected garbage."""
    error_ns: int | None = None
    """The largest possible error of each time; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """A part of a stall that has a culprit and cause of its own."""

    share: float
    """Share of the sampled time, 0 to 1."""
    cause: Cause
    culprit: Culprit | None
    """None: no frame could be read."""
    blocker: Blocker | None
    """None: unknown."""


class Grade(Enum):
    """How well the samples support the diagnosis."""

    STRONG = "strong"
    FAIR = "fair"
    WEAK = "weak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the machine, the container and the process did during the stall. None: not measured."""

    window_ns: int
    """Time between the two readings. The other fields are differences of these readings."""
    system_cpu: float | None = None
    """Share of all cores that was busy, 0 to 1."""
    stolen_cpu: float | None = None
    """Share of this busy time in which a hypervisor ran other machines, 0 to 1."""
    process_cpu: float | None = None
    """Cores that this process used."""
    throttled_ns: int | None = None
    """Time for which the cgroup's quota kept the process from running."""
    pressure_cpu: float | None = None
    """Share of the window in which something waited for a core (PSI, `some`)."""
    pressure_memory: float | None = None
    """Share of the window in which something waited for memory."""
    pressure_io: float | None = None
    """Share of the window in which something waited for a disk."""
    major_faults: int | None = None
    """Pages that the stalled thread had to read from a disk."""
    voluntary_switches: int | None = None
    """How often the stalled thread began to wait."""
    involuntary_switches: int | None = None
    """How often the host took the core from it."""
    memory_available_bytes: int | None = None
    """Available memory of the machine, at the end."""
    memory_used_bytes: int | None = None
    """Memory that the cgroup used, at the end."""
    nice: int | None = None
    """Nice value of the stalled thread at the end, -20 to 19. A higher value is a lower priority."""
    policy: str | None = None
    """Scheduling policy of the stalled thread at the end: `other` (the usual one), `batch`, `idle`, `fifo`,
    `rr`, `deadline`."""
    cores: int | None = None
    """Number of cores on which the stalled thread could run, at the end."""


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
    """One stall with its diagnosis. Its JSON form is in docs/internals/report-schema.md (loopcanary.wire)."""

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
    """Time from the stall's begin to its end. If it goes on, or the process was killed, to when it was last
    seen."""
    threshold_ns: int
    """The threshold that the stall exceeded."""
    queue_ns: int = 0
    """How late its callback began."""
    callback: str | None = field(metadata=spelled(inside="callback", name="name"))
    """Name of the callback; None: unknown, or the turn stalled."""
    task: str | None = field(metadata=spelled(inside="callback"))
    """Name of the task that it ran for; None: none, or unknown."""
    scene: str | None
    """Where the program was: a route, a screen, a job. None: not known."""
    cause: Cause
    confidence: float
    """Confidence in the cause, 0 to 1."""
    evidence: tuple[str, ...]
    """Facts that the diagnosis rests on, one sentence each."""
    advice: str | None
    """What to do instead; None: no advice is known."""
    culprit: Culprit | None
    """The frame to change. None: no frame was read, or the cause does not depend on the code."""
    blocker: Blocker | None
    """None: unknown."""
    holder: Holder | None
    """The first of `holders`; None: the thread waited for no lock and not for the GIL."""
    ledger: Ledger
    samples: int
    """Number of samples."""
    coverage: float
    """Share of the duration that the samples with a stack saw, 0 to 1."""
    dropped_samples: int
    """Number of samples that were lost."""
    stacks: tuple[WeightedStack, ...]
    """Most time first."""
    threads: tuple[ThreadView, ...] = ()
    """All threads at the moment when the stall became a hang; empty: it did not become one."""
    engine: str = "native"
    """`native` or `portable`."""
    cause_share: float = 1.0
    """Share of the sampled time that the cause explains, 0 to 1."""
    second_cause: Cause | None = None
    """None: no other cause has a share of 25 %."""
    second_share: float = 0.0
    """Share of the sampled time that the second cause explains, 0 to 1."""
    portions: tuple[Portion, ...] = ()
    """Parts of a stall that has several causes or culprits, largest first; empty: it has one of each."""
    grade: Grade = Grade.FAIR
    holders: tuple[Holder, ...] = ()
    """All threads that held the GIL or lock for which the thread waited, most time first."""
    waited_on: Target | None = None
    """The file, socket, process or the like that the thread waited for; None: it did not wait for one."""
    contributors: tuple[Contributor, ...] = ()
    """Of a turn: its callbacks by name, most time first."""
    surroundings: Surroundings | None = None
    """None: not measured."""
    startup: bool = False
    """The stall began before the loop's first wait."""
    timeline: Timeline | None = None
    """None if the writer of the stall kept none."""
    calls: TracedCalls | None = None
    """The stalled thread's calls during the stall; None: calls were not traced."""
    state_word: StateWord | None = None
    """The state of a stall of 1 s and more; None: the stall is shorter."""
    killed_by: KilledBy | None = None
    """What ended the process during the stall; None: it did not end, or the reason is not known."""

    @property
    def blamed_holder(self) -> Holder | None:
        """The thread whose code is the bug: it held the GIL or the lock, and its line is known."""
        if self.cause not in (Cause.GIL, Cause.LOCK) or self.holder is None or self.holder.culprit is None:
            return None
        return self.holder

    @property
    def blamed(self) -> Culprit | None:
        """The line to change. If the thread waited for a holder whose line is known, that is the holder's
        line."""
        return self.culprit if self.blamed_holder is None else self.blamed_holder.culprit

    @property
    def stalls(self) -> tuple[str, ...]:
        """Empty: a stall contains no other stalls."""
        return ()

    @property
    def searched(self) -> tuple[str | None, ...]:
        """The texts that a search looks through: callback, task and blocking call."""
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
