"""A stall from its begin to its end: what the samples saw, in order, and what ran shortly before."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model.spelling import spelled
from loopcanary.model.stack_frame import StackFrame
from loopcanary.model.waiting import GilState, Target


class WorkKind(Enum):
    """What took long: one callback, or a whole turn."""

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
    """Name of the callback; None: not known, or a turn."""
    task: str | None = None
    callbacks: int = 1
    """Number of callbacks of the turn."""
    longest_ns: int = 0
    """Duration of the turn's longest callback, or of the callback itself."""
    short: ShortWork | None = None
    """Short work since the long work before this one (within a recorded turn: since the work before it in the
    turn); None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierWork:
    """A long callback or turn before a stall, as its timeline has it."""

    kind: WorkKind = WorkKind.TURN
    name: str | None = None
    """Name of the callback; None: not known, or a turn."""
    task: str | None = None
    """Name of the task that a callback ran for; None: none, or unknown."""
    ago_ns: int
    """Time from its begin to the stall's begin."""
    length_ns: int
    callbacks: int = field(metadata=spelled(absent=0))
    """Number of callbacks of the turn."""
    longest_ns: int = field(metadata=spelled(absent=0))
    """Duration of the turn's longest callback, or of the callback itself."""
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
    """What the stalled thread did, and what it waited for."""

    doing: Doing
    state: str = ""
    """The kernel's letter: R S D T t Z; empty: unknown."""
    syscall: str | None = None
    """Name of the system call that it slept in; None: it was in no system call, or the call is not known."""
    waited_on: Target | None = None
    """The file, socket or the like that the system call works on; None: not known."""
    lock: str | None = None
    """Type of the lock that it waited for; None: it did not wait for a lock."""
    gil: GilState = GilState.UNKNOWN
    holder: str | None = None
    """Name of the thread that held the lock or, without a `lock`, the GIL; None: not known."""
    holder_frames: tuple[StackFrame, ...] = ()
    """Frames of the holder, innermost first; empty: not read, or not stored."""


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
    """Begin, counted from the stall's begin; below 0: the collection began before the stall."""
    length_ns: int
    generation: int
    """The generation that it collected, 0 to 2."""
    collected: int = field(metadata=spelled(absent=0))
    """Objects that it freed."""
    thread: str = field(metadata=spelled(absent=""))
    """The thread that ran it."""
    own: bool = field(metadata=spelled(absent=False))
    """Whether the stalled thread ran it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Spans from the stall's begin to its end, without gaps: each moment is the nearest sample's."""

    spans: tuple[Span, ...] = field(metadata=spelled(apart=True))
    pauses: tuple[Pause, ...] = ()
    """Garbage collections in order of time, from `earlier_from_ns` before the stall to its end."""
    earlier: tuple[EarlierWork, ...] = ()
    """What the loop ran before the stall, in order of begins, a turn before its callbacks."""
    earlier_last: ShortWork | None = None
    """Short work between the last long work and the stall; None: not known."""
    threads_at_ns: int | None = None
    """When the stall's `threads` were read, counted from its begin; None: they were not read."""
    turn_ago_ns: int | None = None
    """Time from the begin of the turn to that of the stalled callback; None: not known, or the turn
    stalled."""
    turn_callbacks: int = 0
    """Number of callbacks of that turn that were over when the stall began."""
    earlier_from_ns: int | None = None
    """How far the record of long work reaches back before the stall's begin; None: there is no record."""
    seen_from_ns: int = field(metadata=spelled(absent=0))
    """Time of the first sample. Before it, the first span is a guess."""
    seen_until_ns: int = field(metadata=spelled(absent=0))
    """Time of the last sample. After it, the last span is a guess."""
    thinned: bool = False
    """There were too many spans: some show only the longest of several."""
