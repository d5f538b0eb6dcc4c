"""The evidence of one stall, before its diagnosis.

The native flight reader and the portable engine both produce these values; the diagnosis consumes them.
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
    """The kernel's counters and state of the thread at a sample. Counters run since the thread's start."""

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
    """The thread called Python functions while the stack was read, whichever function the stack ends in."""
    holder_tid: int | None = None
    holder_stack: Stack | None = None
    """Stack of the thread that holds the GIL or, with `lock`, the lock."""
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
    """The thread's on-CPU and run-queue counters at or before the stall's begin. The other counters are not
    read."""

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
    """Time for which the cgroup was throttled (cpu.stat: throttled_usec)."""
    throttled_periods: int | None = None
    pressure_cpu_ns: int | None = None
    """`some total` of the cgroup, or else of the machine, here and below (PSI)."""
    pressure_io_ns: int | None = None
    pressure_memory_ns: int | None = None
    memory_available_bytes: int | None = None
    """Available memory of the machine."""
    memory_used_bytes: int | None = None
    """Memory that the cgroup uses."""
    nice: int | None = None
    """Nice value of the stalled thread, -20 to 19. A higher value is a lower priority."""
    policy: int | None = None
    """Scheduling policy of the stalled thread: the kernel's SCHED_*."""
    cores: int | None = None
    """Number of cores on which the stalled thread may run; 0: not known."""


SLICE_NS: Final = 100_000_000
"""Length of the slices in which congestion is counted."""


def congested_slices(begin_ns: int, end_ns: int) -> int:
    """Number of slices that a turn congests: those in which it is busy after its own first SLICE_NS.
    `begin_ns` and `end_ns` count from the lane's opening (lc_congested_slices of native/core/lane/lane.h)."""
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
    """Slices of SLICE_NS in which a turn was busy that had already been busy for SLICE_NS. Only turns that
    are over count."""
    callback_ns: int = 0
    """Sum of all callbacks; `busy_ns` counts whole turns. 0 where callbacks are not seen."""
    callback_ns_squared: int = 0
    stalls: int = 0
    """Stalls that ended, also those for which there was no slot."""
    stalled_ns: int = 0
    gc_ns: int | None = None
    """Time of garbage collections on this thread."""
    on_cpu_ns: int | None = None
    """CPU time of this thread over the lane's life."""
    run_queue_ns: int | None = None
    busy_since_ns: int | None = None
    """Begin of the turn that is going on, None where the thread waits."""
    turned_ns: int | None = None
    """Begin of the latest turn; None: not known, or there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault that a thread caused by an instruction of its own."""

    signal: str
    is_stack_over: bool = False
    """The thread's stack has overflowed."""


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
    """(native thread id, name) of the threads that lived when the stall was read, and of threads that held a
    lock for which the stalled thread waited; these may have ended."""
    engine: str = "native"
    first_turn: bool = False
    """It is the first turn of its loop, which had never waited before."""
    before: ThreadReading | None = None
    """The last look at the thread before the stall began."""
    host: tuple[HostReading, ...] = ()
    """Readings at the first sample, at the end or last sample, and, in long stalls, in between; ascending."""
    contributors: tuple[Contributor, ...] = ()
    """Callbacks of the turn by name, most time first; exact from `contributors_from_ns` on."""
    contributors_from_ns: int | None = None
    contributors_dropped: int = 0
    """Callbacks for whose name there was no room."""
    waiters: tuple[int, ...] = ()
    """Ids of other threads that waited for the same lock as the stalled thread. They are from the sample that
    saw most such threads; only the first ones are kept."""
    waiter_count: int = 0
    """Number of such threads at that sample, also of those that are not in `waiters`."""
    circle: tuple[ThreadWait, ...] = ()
    """The stalled thread and the threads that it waits for: each waits for the next one, the last for an
    earlier one."""
    earlier: tuple[LongWork, ...] = ()
    """Long work of the lane that ended before the stall began, in order of begins, a turn before its
    callbacks."""
    earlier_from_ns: int | None = None
    """When the record of earlier work begins; None: there is none."""
    earlier_last: ShortWork | None = None
    """Short work between the last long work and the stall; None: unknown."""
    killed_by: KilledBy | None = None
    """Facts of the signals that came during the stall, if the stall has ended or the process died in it."""
    fault: Fault | None = None
    """The fault of this thread that ended the process."""
    earlier_collections: tuple[Collection, ...] = ()
    """Garbage collections that were over before the stall began."""
    tasks: tuple[str, ...] = ()
    """Of the loop's other tasks that were not done when it became a hang, the first: their names."""
    task_count: int = 0
    """All of these."""
    hang: IssueKind | None = None
    """Not a stall: the program does not start or end (native/core/watchdog/watch_state.h)."""
