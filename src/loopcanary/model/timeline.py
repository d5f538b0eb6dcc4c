"""A stall from its begin to its end: what the samples saw, in order, and what ran shortly before."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model.spelling import spelled
from loopcanary.model.stack_frame import StackFrame
from loopcanary.model.waiting import GilState, Target


class WorkKind(Enum):
    """What was long: one callback, or a whole turn."""

    CALLBACK = "callback"
    TURN = "turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortWork:
    """What a loop did in a time without long work."""

    turns: int = field(metadata=spelled(absent=0))
    """Turns that began and ended in this time."""
    callbacks: int = field(metadata=spelled(absent=0))
    busy_ns: int = field(metadata=spelled(absent=0))
    """Time in which the loop ran."""
    idle_ns: int = field(metadata=spelled(absent=0))
    """Time in which the loop waited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongWork:
    """A callback of a lane, or a turn, that was long enough to be recorded by itself."""

    kind: WorkKind
    begin_ns: int
    end_ns: int
    name: str | None = None
    """Of a callback; None: not known."""
    task: str | None = None
    callbacks: int = 1
    """Of a turn, how many it ran."""
    longest_ns: int = 0
    """Of a turn, its longest callback; of a callback, its own time."""
    short: ShortWork | None = None
    """Since the long work before it or, within a turn that is recorded, since what was before it there; None:
    not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierWork:
    """A long callback or turn before a stall, as its timeline has it."""

    kind: WorkKind = WorkKind.TURN
    name: str | None = None
    """Of a callback; None: unknown."""
    task: str | None = None
    """Name of the task that a callback ran for; None: none, or unknown."""
    ago_ns: int
    """From its begin to that of the stall."""
    length_ns: int
    callbacks: int = field(metadata=spelled(absent=0))
    """Of a turn, how many it ran."""
    longest_ns: int = field(metadata=spelled(absent=0))
    """Of a turn, its longest callback; of a callback, its own time."""
    short: ShortWork | None = field(default=None, metadata=spelled(apart=True))


class Doing(Enum):
    """What a thread did, in one word."""

    ON_CPU = "on-cpu"
    READY = "ready"
    """It could have run, and the host did not let it."""
    GIL_WAIT = "gil-wait"
    GC = "gc"
    BLOCKED = "blocked"
    STOPPED = "stopped"
    """By a signal or a debugger."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What the stalled thread did, and what kept it from going on."""

    doing: Doing
    state: str = ""
    """The kernel's letter: R S D T t Z; empty: unknown."""
    syscall: str | None = None
    """Name of the system call that it slept in; None: in none, or unknown."""
    waited_on: Target | None = None
    """What that call works on; None: unknown."""
    lock: str | None = None
    """Type of the lock that it waited for; None: for none."""
    gil: GilState = GilState.UNKNOWN
    holder: str | None = None
    """The thread that held the lock or, without a `lock`, the GIL; None: unknown."""
    holder_frames: tuple[StackFrame, ...] = ()
    """What that thread ran, innermost first; empty: not read, or not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A time in which the samples saw one stack and one activity."""

    offset_ns: int
    """From the stall's begin."""
    length_ns: int
    """To the next span's begin."""
    samples: int = field(metadata=spelled(absent=1))
    stack: int | None
    """Index into the stall's `stacks`; None: it could not be read."""
    activity: Activity = field(metadata=spelled(apart=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """One garbage collection."""

    offset_ns: int
    """From the stall's begin; below 0: it began before."""
    length_ns: int
    generation: int
    """Which it collected, 0 to 2."""
    collected: int = field(metadata=spelled(absent=0))
    """Objects that it freed."""
    thread: str = field(metadata=spelled(absent=""))
    """The thread that ran it."""
    own: bool = field(metadata=spelled(absent=False))
    """That was the stalled thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Spans from the stall's begin to its end, without gaps: each moment is the nearest sample's."""

    spans: tuple[Span, ...] = field(metadata=spelled(apart=True))
    pauses: tuple[Pause, ...] = ()
    """Garbage collections in order of time, from `earlier_from_ns` before the stall to its end."""
    earlier: tuple[EarlierWork, ...] = ()
    """What the loop ran before the stall, in order of begins, a turn before its callbacks."""
    earlier_last: ShortWork | None = None
    """Between the last of them and the stall; None: not known."""
    threads_at_ns: int | None = None
    """When the stall's `threads` were read, from its begin; None: they were not."""
    turn_ago_ns: int | None = None
    """Of a stalled callback, how long before it its turn began; None: unknown, or the turn stalled."""
    turn_callbacks: int = 0
    """How many callbacks of that turn were over then."""
    earlier_from_ns: int | None = None
    """How far before the stall's begin the record of long work reaches back; None: there is none."""
    seen_from_ns: int = field(metadata=spelled(absent=0))
    """When the first look was; before it, the first span is a guess."""
    seen_until_ns: int = field(metadata=spelled(absent=0))
    """When the last look was; after it, the last span is a guess."""
    thinned: bool = False
    """There were too many spans: some show only the longest of several."""
