"""A stall with its verdict: what reports show and stores keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.spelling import spelled
from loopcanary.model.stack_frame import StackFrame
from loopcanary.model.timeline import Timeline
from loopcanary.model.waiting import Contributor, LockProof, Target


class StallScope(Enum):
    """What was too long: one callback, or a whole turn none of whose callbacks was."""

    CALLBACK = "callback"
    TURN = "turn"


class StallState(Enum):
    """Whether the stall is over, goes on, or ended with the process."""

    ENDED = "ended"
    ONGOING = "ongoing"
    KILLED = "killed"


class Severity(Enum):
    """Stall: over the threshold. Hang: 1 s and more. ANR: 5 s and more."""

    STALL = "stall"
    HANG = "hang"
    ANR = "anr"


HANG_NS = 1_000_000_000
ANR_NS = 5_000_000_000


class Cause(Enum):
    """Why the thread was blocked; DESIGN section 6."""

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
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """The frame that the user can change: innermost own frame that held most of the stall."""

    function: str
    qualname: str = field(metadata=spelled(like="function"))
    file: str
    line: int
    source: str | None
    """The line of source, stripped; None where the file cannot be read or has changed."""
    in_app: bool
    """False: no frame of the program's own code was on the stack; this is the innermost frame."""
    column: int = 0
    """Where the call is in `source`: 1-based character columns, 0 unknown."""
    end_column: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """What the culprit was doing: the call as written, and the function that was reached."""

    call: str | None
    """Source text of the call, such as `json.loads(body)`; None where unknown."""
    function: str | None
    """Qualified name of the innermost frame below the culprit, None where it was in C directly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The thread that held the GIL (or lock) the stalled thread waited for."""

    thread: str
    culprit: Culprit | None
    share: float = 1.0
    """Of the stall's seen time, 0 to 1."""
    lock: str | None = None
    """Type of the lock that it held; None: the GIL."""
    proof: LockProof | None = None
    """How it is known; None: the GIL's own word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Where the wall time went, in nanoseconds. `gc` is a part of `on_cpu`, the others sum to the
    stall's duration as far as they are known; None: not measured."""

    on_cpu_ns: int | None = None
    gil_wait_ns: int | None = None
    run_queue_ns: int | None = None
    blocked_ns: int | None = None
    gc_ns: int | None = None
    error_ns: int | None = None
    """No entry is further from the truth than this; None unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """A part of a stall that has a culprit and cause of its own."""

    share: float
    """Of the seen time, 0 to 1."""
    cause: Cause
    culprit: Culprit | None
    blocker: Blocker | None


class Grade(Enum):
    """How far the samples carry the verdict."""

    STRONG = "strong"
    FAIR = "fair"
    WEAK = "weak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What machine, container and process did while the stall lasted. None: not measured."""

    window_ns: int
    system_cpu: float | None = None
    """Share of all cores that was busy, 0 to 1."""
    process_cpu: float | None = None
    """Cores that this process used."""
    throttled_ns: int | None = None
    pressure_cpu: float | None = None
    """Share of the window in which something waited for a core, for memory, for a disk (PSI, `some`)."""
    pressure_memory: float | None = None
    pressure_io: float | None = None
    major_faults: int | None = None
    """Of the stalled thread, as the switches are."""
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    memory_available_bytes: int | None = None
    memory_used_bytes: int | None = None
    """Of the cgroup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedStack:
    """A distinct stack and how much of the stall it held, frames innermost first."""

    weight_ns: int
    truncated: bool = False
    frames: tuple[StackFrame, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadView:
    """One of all threads, read when the stall became a hang."""

    tid: int
    name: str
    state: str
    holds_gil: bool
    waits_for_gil: bool
    frames: tuple[StackFrame, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """One stall, judged. Contract 7.3 is its JSON form (loopcanary.wire)."""

    id: str
    """Unique over sessions: `<session>-<serial>`."""
    fingerprint: str
    session: str
    pid: int
    thread: str
    loop: str
    """Kind of loop: asyncio, uvloop, thread, ..."""
    kind: ClassVar[IssueKind] = IssueKind.STALL
    title: str = field(metadata=spelled(absent=""))
    scope: StallScope = field(metadata=spelled(absent=StallScope.CALLBACK))
    state: StallState
    severity: Severity
    began_wall_ns: int
    duration_ns: int
    """To the end; for one that goes on or was killed, to when it was last seen."""
    threshold_ns: int
    queue_ns: int = 0
    callback: str | None = field(metadata=spelled(inside="callback", name="name"))
    task: str | None = field(metadata=spelled(inside="callback"))
    scene: str | None
    cause: Cause
    confidence: float
    evidence: tuple[str, ...]
    advice: str | None
    culprit: Culprit | None
    blocker: Blocker | None
    holder: Holder | None
    ledger: Ledger
    samples: int
    coverage: float
    """Share of the stall's time that lies between samples of it, 0 to 1."""
    dropped_samples: int
    stacks: tuple[WeightedStack, ...]
    threads: tuple[ThreadView, ...] = ()
    engine: str = "native"
    cause_share: float = 1.0
    """Of the seen time that the cause explains, 0 to 1."""
    second_cause: Cause | None = None
    """Named from a share of 25 %."""
    second_share: float = 0.0
    portions: tuple[Portion, ...] = ()
    """Of a mixed stall, largest first; empty where one culprit and cause explain it."""
    grade: Grade = Grade.FAIR
    holders: tuple[Holder, ...] = ()
    """All that held what the thread waited for, most time first; `holder` is the first of them."""
    waited_on: Target | None = None
    contributors: tuple[Contributor, ...] = ()
    """Of a turn: its callbacks by name, most time first."""
    surroundings: Surroundings | None = None
    startup: bool = False
    """Before the loop first waited."""
    timeline: Timeline | None = None
    """None if the writer of the stall kept none."""


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
