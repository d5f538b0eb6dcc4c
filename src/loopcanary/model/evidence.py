"""What was seen of one stall, before it is judged.

The native flight reader and the portable engine both produce these values; the diagnosis consumes
them. Nothing here is a verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loopcanary.late_dataclass import dataclass
from loopcanary.model.stack import Stack
from loopcanary.model.timeline import LongWork, ShortWork
from loopcanary.model.waiting import Contributor, GilState, LockView, Target

if TYPE_CHECKING:
    from loopcanary.model.issues.kind import IssueKind
    from loopcanary.model.session import KilledBy
    from loopcanary.model.stall import StallScope  # which is not loaded where figures are read


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelView:
    """What the kernel said of the thread when a sample was taken. Sums are since the thread's start."""

    on_cpu_ns: int
    run_queue_ns: int
    voluntary_switches: int = 0
    involuntary_switches: int = 0
    major_faults: int = 0
    thread_state: str = ""
    """Letter of /proc/TID/stat: R S D T t Z; empty: unknown."""
    syscall: int | None = None
    """Number of the system call that the thread slept in; None: it ran, or it is unknown."""
    syscall_args: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One reading of the stalled thread, proven to be of this stall (its epoch did not move)."""

    at_ns: int
    stack: Stack | None
    kernel: KernelView | None = None
    gil: GilState = GilState.UNKNOWN
    waits_for_gil: bool = False
    in_gc: bool = False
    calls_python: bool = False
    """Functions of Python came and went while it was read, whichever the stack ends in."""
    holder_tid: int | None = None
    holder_stack: Stack | None = None
    """Of the thread that holds the GIL or, with `lock`, the lock."""
    gc_total_ns: int = 0
    target: Target | None = None
    lock: LockView | None = None
    in_circle: bool = False
    """The thread waited for threads that wait for each other: the `circle` of the evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadWait:
    """A thread that waits for a lock."""

    tid: int
    lock: LockView
    holder_tid: int
    stack: Stack | None = None
    has_timeout: bool = False
    """The wait ends by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStack:
    """Another thread of the process, read once when the stall became a hang."""

    tid: int
    at_ns: int
    name: str = ""
    stack: Stack | None = None
    thread_state: str = ""
    holds_gil: bool = False
    waits_for_gil: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A garbage collection on any thread of the process. Times of the monotonic clock."""

    begin_ns: int
    end_ns: int
    tid: int
    generation: int
    collected: int = 0
    uncollectable: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackNames:
    """Names of the work that stalled. `task` is None where no task was involved or it is unknown."""

    name: str
    task: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadReading:
    """The thread's counters at a moment that lies at or before the stall's begin; of them, on-CPU and run
    queue only."""

    at_ns: int
    kernel: KernelView


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReading:
    """Counters of machine, container and process at one moment, and how the stalled thread is scheduled.
    None: not measured here."""

    at_ns: int
    process_cpu_ns: int | None = None
    """User and system time of all threads."""
    process_major_faults: int | None = None
    system_busy_ns: int | None = None
    """Of all cores, without idle and iowait (/proc/stat)."""
    system_total_ns: int | None = None
    system_stolen_ns: int | None = None
    """Of the busy time: the hypervisor ran other machines."""
    throttled_ns: int | None = None
    """Of the cgroup (cpu.stat: throttled_usec)."""
    throttled_periods: int | None = None
    pressure_cpu_ns: int | None = None
    """`some total` of the cgroup, or else of the machine, here and below (PSI)."""
    pressure_io_ns: int | None = None
    pressure_memory_ns: int | None = None
    memory_available_bytes: int | None = None
    """Of the machine."""
    memory_used_bytes: int | None = None
    """Of the cgroup."""
    nice: int | None = None
    """Of the stalled thread: -20 to 19, where more is less."""
    policy: int | None = None
    """The kernel's SCHED_* by which it is scheduled."""
    cores: int | None = None
    """On how many it may run; 0: not known."""


SLICE_NS: Final = 100_000_000
"""Length of the slices in which congestion is counted."""


def congested_slices(begin_ns: int, end_ns: int) -> int:
    """How many slices of a lane a turn congests that is busy from `begin_ns` to `end_ns` after the lane's
    opening: all that it is busy in after its own first SLICE_NS (lc_congested_slices of
    native/core/lane/lane.h).
    """
    from_ns = begin_ns + SLICE_NS
    if begin_ns < 0 or end_ns <= from_ns:
        return 0
    return (end_ns - 1) // SLICE_NS - from_ns // SLICE_NS + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneTotals:
    """Sums of one watched thread since its lane was opened. Times in nanoseconds."""

    lane: int
    generation: int
    tid: int
    loop_kind: str
    thread_name: str
    opened_ns: int
    closed_ns: int | None
    turns: int
    callbacks: int
    busy_ns: int
    busy_ns_squared: int
    longest_turn_ns: int
    queue_ns_total: int
    queue_ns_max: int
    histogram: tuple[tuple[int, int], ...]
    """(upper bound in ns, turns in the bucket) of the buckets that are not empty, ascending."""
    slices_congested: int = 0
    """Of the slices of SLICE_NS that the lane's life consists of, those in which a turn was busy that
    had been so for SLICE_NS before; of turns that are over."""
    callback_ns: int = 0
    """Sum of all callbacks; `busy_ns` counts whole turns. 0 where callbacks are not seen."""
    callback_ns_squared: int = 0
    stalls: int = 0
    """Stalls that ended, also those for which there was no slot."""
    stalled_ns: int = 0
    gc_ns: int | None = None
    """In collections on this thread."""
    on_cpu_ns: int | None = None
    """Of this thread over the lane's life."""
    run_queue_ns: int | None = None
    busy_since_ns: int | None = None
    """Begin of the turn that is going on, None where the thread waits."""
    turned_ns: int | None = None
    """Begin of the latest turn; None: not known, or there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What a thread caused by what it executed."""

    signal: str
    is_stack_over: bool = False
    """Its stack has run over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StallEvidence:
    """Everything that was recorded of one stall.

    `begin_ns` and `end_ns` are exact where the thread itself stamped them; `end_ns` is None for a
    stall that goes on, or that the process did not survive. `last_look_ns` is when the stall was last
    seen going on.
    """

    serial: int
    scope: StallScope
    tid: int
    loop_kind: str
    thread_name: str
    begin_ns: int
    end_ns: int | None
    last_look_ns: int
    threshold_ns: int
    names: CallbackNames | None = None
    scene: str | None = None
    samples: tuple[Sample, ...] = ()
    sample_interval_ns: int = 0
    samples_dropped: tuple[tuple[str, int], ...] = ()
    """(reason, count): `moved`, `unreadable`, `full`; `late` where the portable engine could not run."""
    threads: tuple[ThreadStack, ...] = ()
    collections: tuple[Collection, ...] = ()
    turn_begin_ns: int | None = None
    turn_callbacks: int = 0
    turn_callback_ns: int = 0
    longest_callback_ns: int = 0
    end_cpu_ns: int | None = None
    """CPU time of the thread at the stall's end, since the thread's start."""
    queue_ns: int = 0
    """How late the callback began: after its due time, or after the turn in which it was ready began."""
    allowance_ns: int = 0
    thread_names: tuple[tuple[int, str], ...] = ()
    """(native thread id, name) of the process's threads, those that lived when the stall was taken; and
    of those that held what the stalled thread waited for, though they may have ended."""
    engine: str = "native"
    first_turn: bool = False
    """It is the first turn of its loop, which had never waited before."""
    before: ThreadReading | None = None
    """The last look at the thread before the stall began."""
    host: tuple[HostReading, ...] = ()
    """At the first sample, at the end or last sample, and in between of long stalls; ascending."""
    contributors: tuple[Contributor, ...] = ()
    """Callbacks of the turn by name, most time first; exact from `contributors_from_ns` on."""
    contributors_from_ns: int | None = None
    contributors_dropped: int = 0
    """Callbacks for whose name there was no room."""
    waiters: tuple[int, ...] = ()
    """Other threads that waited for the lock that the thread waited for, by id: the first of the most that
    were seen at one look."""
    waiter_count: int = 0
    """All of these."""
    circle: tuple[ThreadWait, ...] = ()
    """The stalled thread, and those behind it: each waits for the next one, the last for one of them."""
    earlier: tuple[LongWork, ...] = ()
    """Of the lane, over before the stall began; in order of their begins, a turn before its callbacks."""
    earlier_from_ns: int | None = None
    """When the record of earlier work begins; None: there is none."""
    earlier_last: ShortWork | None = None
    """Between the last earlier work and the stall; None: unknown."""
    killed_by: KilledBy | None = None
    """What signals say that came in it, if it has ended, or the process has died in it."""
    fault: Fault | None = None
    """Of this thread, by which the process ended."""
    earlier_collections: tuple[Collection, ...] = ()
    """Garbage collections that were over before the stall began."""
    tasks: tuple[str, ...] = ()
    """Of the loop's other tasks that were not done when it became a hang, the first: their names."""
    task_count: int = 0
    """All of these."""
    hang: IssueKind | None = None
    """Not a stall: the program does not start or end (native/core/watchdog/watch_state.h)."""
