"""A stall with its verdict: what reports show and stores keep."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
    qualname: str
    file: str
    line: int
    source: str | None
    """The line of source, stripped; None where the file cannot be read or has changed."""
    in_app: bool
    """False: no frame of the program's own code was on the stack; this is the innermost frame."""
    column: int = 0
    """Where the call stands in `source`: 1-based character columns, 0 unknown."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Where the wall time went, in nanoseconds. `gc` is a part of `on_cpu`, the others sum to the
    stall's duration as far as they are known; None: not measured."""

    on_cpu_ns: int | None = None
    gil_wait_ns: int | None = None
    run_queue_ns: int | None = None
    blocked_ns: int | None = None
    gc_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFrame:
    """A frame as reports show it."""

    function: str
    qualname: str
    file: str
    line: int
    in_app: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedStack:
    """A distinct stack and how much of the stall it held, frames innermost first."""

    weight_ns: int
    frames: tuple[StackFrame, ...]
    truncated: bool = False


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
    """One stall, judged. Contract 7.3 is its JSON form (model.wire)."""

    id: str
    """Unique over sessions: `<session>-<serial>`."""
    session: str
    pid: int
    fingerprint: str
    title: str
    thread: str
    loop: str
    """Kind of loop: asyncio, uvloop, thread, ..."""
    scope: StallScope
    state: StallState
    severity: Severity
    began_wall_ns: int
    duration_ns: int
    """To the end; for one that goes on or was killed, to when it was last seen."""
    threshold_ns: int
    callback: str | None
    task: str | None
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
    queue_ns: int = 0
    engine: str = "native"


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
