"""What a thread waited for, and what kept a turn busy: words that evidence and verdict share."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model.spelling import spelled


class GilState(Enum):
    """Who held the GIL, as seen from the sampled thread."""

    UNKNOWN = "unknown"
    FREE = "free"
    SELF = "self"
    OTHER = "other"


class TargetKind(Enum):
    """What a thread waits for in a system call."""

    FILE = "file"
    SOCKET = "socket"
    PIPE = "pipe"
    TERMINAL = "terminal"
    CHILD = "child"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a system call works on, as the kernel names it at the time of the sample."""

    kind: TargetKind
    name: str = field(metadata=spelled(absent=""))
    """Path, `host:port` of the peer, path of a unix socket, or the command of a child; empty unknown."""
    pid: int | None = None
    """PID of a child; None: not known, or not a child."""


class LockProof(Enum):
    """How it is known who holds a lock."""

    OWNER = "owner"
    """The lock names its owner (RLock)."""
    WITH = "with"
    """The thread is in a `with` block of this very lock, or runs the module whose import lock it is."""
    NONE = "none"
    """The holder is not known."""


class StateWord(Enum):
    """The state of a thread that does not respond, in one word: the first one that is true of the thread."""

    STOPPED = "stopped"
    """A signal, a debugger or a frozen machine kept it from running."""
    STARVED = "starved"
    """It was ready, and the host did not run it."""
    DEADLOCKED = "deadlocked"
    """It waits for what only it can release, or threads that wait for each other."""
    PEER_DEAD = "peer-dead"
    """It waits for a peer that does not answer."""
    HUNG = "hung"
    """It is in one place, and makes no progress."""
    SLOW = "slow"
    """It makes progress, and takes long."""


THREAD_END = "thread"
"""The `kind` of lock that a join waits for. No thread holds it: the one that is named runs."""


FUTURE = "Future"
"""The `kind`, in a circle of threads, of a wait for a result; its holder is the thread that it comes from."""


SHARED_LOCK = "multiprocessing.Lock"
"""The `kind` of a lock between processes, and of a semaphore of one, as of a queue with room for one item."""
SHARED_RLOCK = "multiprocessing.RLock"
SHARED_SEMAPHORE = "multiprocessing.Semaphore"
"""It has no one holder. Conditions, events and queues of multiprocessing wait for one, too."""


IMPORT_LOCK = "import lock"
"""What the `kind` of a module's lock begins with; ` of <module>` follows where the module is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockView:
    """The lock that the sampled thread waits for; its holder is the `holder_tid` of the sample."""

    kind: str
    """Name of its type: `lock`, `RLock`, `multiprocessing.Lock`."""
    proof: LockProof
    taken_at: int | None = None
    """The holder's frame that took the lock in a `with`, numbered from the outermost frame, 1; None: not
    known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """A line that scheduled callbacks: the innermost one outside of asyncio. For a task, the line that
    created it."""

    file: str
    line: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributor:
    """Callbacks of one name within a turn."""

    name: str
    count: int
    """How many ran."""
    total_ns: int
    longest_ns: int
    scheduled: tuple[Scheduler, ...] = ()
    """Lines that scheduled these callbacks, most callbacks first; empty: the loop did not note the lines."""
