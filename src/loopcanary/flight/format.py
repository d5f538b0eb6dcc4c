"""The flight file's format, stated as data.

The same facts as native/core/flight/flight_format.h, their source: test_format_agreement.py compares them.
What the fields mean: docs/internals/flight-format.md."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final

MAGIC: Final = b"LCFLIGHT"
VERSION: Final = 2
BYTE_ORDER_MARK: Final = 0x01020304
HEADER_BYTES: Final = 4096
FACTS_BYTES: Final = 16384
COUNTER_ROOM: Final = 64
GC_COUNT: Final = 64
LANE_COUNT: Final = 256
LANE_BYTES: Final = 24576
LONG_WORK_COUNT: Final = 64
LONG_WORK_OFFSET: Final = 8192
LONG_NAME_BYTES: Final = 120
LONG_TASK_BYTES: Final = 48
ENDED_COUNT: Final = 16
NAME_BYTES: Final = 64
HISTOGRAM_SUB_BITS: Final = 4
HISTOGRAM_MIN_BITS: Final = 10
HISTOGRAM_OCTAVES: Final = 30
HISTOGRAM_BUCKETS: Final = 1 + (HISTOGRAM_OCTAVES << HISTOGRAM_SUB_BITS)
SLOT_COUNT: Final = 16
SLOT_BYTES: Final = 131072
SAMPLE_MAX: Final = 384
STACK_FRAMES_MAX: Final = 256
SLOT_THREADS_MAX: Final = 64
SLOT_WAITERS_MAX: Final = 8
HOST_MAX: Final = 16
TALLY_COUNT: Final = 32
STRING_MAX: Final = 512
KEEPER_BYTES: Final = 16384
KEEPER_ALIGNMENT: Final = 65536
KEEPER_TEXT_BYTES: Final = 8192

SAMPLE_WAITS_FOR_GIL: Final = 1
SAMPLE_GC: Final = 2
SAMPLE_NO_KERNEL_VIEW: Final = 4
SAMPLE_CALLS_PYTHON: Final = 8
SAMPLE_IN_CIRCLE: Final = 16
HOST_PROCESS_CPU: Final = 1
HOST_MAJOR_FAULTS: Final = 2
HOST_SYSTEM: Final = 4
HOST_THROTTLED: Final = 8
HOST_PRESSURE_CPU: Final = 16
HOST_PRESSURE_IO: Final = 32
HOST_PRESSURE_MEMORY: Final = 64
HOST_AVAILABLE: Final = 128
HOST_USED: Final = 256
HOST_PRIORITY: Final = 512
STACK_TRUNCATED: Final = 1
STACK_INNER_CUT: Final = 2
NO_REF: Final = 0
SYSCALL_RUNNING: Final = -1
SYSCALL_UNKNOWN: Final = -2


class SectionKind(IntEnum):
    """Index of a section in the header."""

    FACTS = 0
    COUNTERS = 1
    GC = 2
    LANES = 3
    SLOTS = 4
    KEEPER = 5


class TakenBy(IntEnum):
    """Who takes stalls; DRAIN: the program itself."""

    DRAIN = 0
    KEEPER = 1


class ProcessState(IntEnum):
    """State of the process, as the header has it."""

    RUNNING = 1
    ENDED = 2
    EXITED = 3


class ClockKind(IntEnum):
    """The counter that gives the ticks."""

    MONOTONIC = 0
    TSC = 1
    CNTVCT = 2


class EndedKind(IntEnum):
    """The work that was too long. The last three only in a slot: a thread in no turn has caused a fault; the
    main one is in an import before its first loop, or at its end, and does not get on."""

    CALLBACK = 1
    TURN = 2
    FAULT = 3
    BOOT = 4
    EXIT = 5


class LaneState(IntEnum):
    """Who has the lane."""

    FREE = 0
    ACTIVE = 1
    CLOSED = 2


class SlotState(IntEnum):
    """How far the stall in a slot has come."""

    FREE = 0
    OPEN = 1
    STALL = 2
    ENDED = 3


class Level(IntEnum):
    """How bad it has become."""

    NONE = 0
    STALL = 1
    HANG = 2
    ANR = 3


class Gil(IntEnum):
    """Who held the GIL, as seen from the sampled thread."""

    UNKNOWN = 0
    FREE = 1
    HELD_BY_SELF = 2
    HELD_BY_OTHER = 3


class TargetCode(IntEnum):
    """What the sampled thread waited for in a system call."""

    NONE = 0
    FILE = 1
    SOCKET = 2
    PIPE = 3
    TERMINAL = 4
    CHILD = 5
    OTHER = 6


class LockKind(IntEnum):
    """What the sampled thread, asleep in an acquire, waited for."""

    NONE = 0
    PLAIN = 1
    RECURSIVE = 2
    MODULE = 3
    THREAD = 4
    FUTURE = 5
    SHARED, SHARED_RECURSIVE, SHARED_SEMAPHORE = 6, 7, 8


class ProofCode(IntEnum):
    """How it is known who holds it."""

    NONE = 0
    OWNER = 1
    WITH = 2


COUNTERS: Final = (
    "watchdog_wakeups",
    "watchdog_late",
    "watchdog_cpu_ns",
    "samples_taken",
    "samples_dropped_moved",
    "samples_dropped_unreadable",
    "samples_dropped_full",
    "frames_truncated",
    "sample_ns_total",
    "sample_ns_max",
    "stalls_recorded",
    "stalls_unsampled",
    "stalls_dropped_no_slot",
    "stalls_dropped_ring_full",
    "stalls_suppressed_debugger",
    "stalls_suppressed_expected",
    "lanes_refused",
    "gc_collections",
    "checkpoints_written",
    "checkpoints_failed",
    "suspends",
    "clock_steps",
    "calls_refused",
    "calls_no_descriptor",
    "stalls_suppressed_storm",
    "keepers_started",
    "keepers_refused",
    "texts_written",
    "texts_dropped",
)


class Layout:
    """One C structure: its fields in order, each with a `struct` code, without gaps between them.

    Little-endian, whatever the machine that reads. CPython's `struct` loads an aligned word at once
    where the machine has the same byte order, so that a word that is stored meanwhile is not torn.
    """

    __slots__ = ("_names", "codes", "name", "offsets", "size", "struct")

    def __init__(self, name: str, fields: str, size: int | None = None) -> None:
        """`fields`: lines of "code name name ..."; `size`: sizeof where padding follows the last one."""
        self.name = name
        self.offsets: dict[str, int] = {}
        self.codes: dict[str, str] = {}
        at = 0
        for code, field in _fields(fields):
            self.offsets[field] = at
            self.codes[field] = code
            at += struct.calcsize("<" + code)
        self._names = tuple(self.offsets)
        self.struct = struct.Struct("<" + "".join(self.codes.values()))
        self.size = at if size is None else size

    def read(self, data: bytes | bytearray | memoryview, offset: int = 0) -> dict[str, Any]:
        """All fields by name; integers, or bytes where the code is `s`."""
        return dict(zip(self._names, self.struct.unpack_from(data, offset), strict=True))

    def every(self, data: bytes | memoryview) -> Iterator[dict[str, Any]]:
        """All fields of each of so many structures, one behind the other."""
        for offset in range(0, len(data) - self.size + 1, self.size):
            yield self.read(data, offset)

    def width(self, field: str) -> int:
        return struct.calcsize("<" + self.codes[field])


def _fields(lines: str) -> Iterator[tuple[str, str]]:
    for line in lines.splitlines():
        code, *names = line.split() or [""]
        yield from ((code, name) for name in names)


SECTION = Layout("lc_section", "Q offset stride count used")

HEADER = Layout(
    "lc_header",
    f"""
    8s magic
    I version byte_order
    Q file_bytes pid parent_pid process_start pid_namespace
    16s boot_id
    Q state ended_ns started_ns anchor_monotonic_ns
    q anchor_wall_ns
    Q anchor_ticks tick_ns_q32 clock_kind heartbeat_ns parked
    Q gc_epoch gc_begin gc_tid gc_generation gc_total_ns
    {SECTION.size * len(SectionKind)}s sections
    Q takes text_written
    {SECTION.size}s looks
    """,
)

GC_ENTRY = Layout("lc_gc_entry", "Q sequence begin_ns end_ns tid generation collected uncollectable reserved")

ENDED = Layout(
    "lc_ended",
    """
    Q sequence kind epoch turn_epoch begin end turn_begin turn_callbacks turn_callback_ticks
    Q longest_ticks cpu_ns queue_ticks
    32s reserved
    """,
)

LONG_WORK = Layout(
    "lc_long_work",
    f"""
    Q sequence kind epoch begin end callbacks longest_ticks
    Q turns_before busy_ticks_before callbacks_before limit
    {LONG_NAME_BYTES}s name
    {LONG_TASK_BYTES}s task
    """,
)

TALLY_ENTRY = Layout("lc_tally_entry", "Q key owner site count ticks longest")

LANE = Layout(
    "lc_lane",
    f"""
    Q epoch begin work turn_epoch turn_begin turn_callbacks turn_callback_ticks turn_longest
    Q turn_longest_epoch turn_rest scene allowance allowance_epoch queue_ticks turn_callback_ticks2 tally
    Q turns callbacks busy_ticks busy_ns2_high busy_ns2_low longest_turn queue_ticks_total queue_ticks_max
    Q callback_ticks callback_ticks2_high callback_ticks2_low slices_congested stalls stalled_ticks gc_ns
    Q long_count
    Q state tid thread_state opened_ns closed_ns threshold sample_delay generation
    {NAME_BYTES // 2}s loop_kind
    {NAME_BYTES}s thread_name
    Q ended_seen ended_count abandoned on_cpu_begin_ns run_queue_begin_ns on_cpu_ns run_queue_ns
    Q long_limit long_limit_least long_round long_turn long_turn_ticks
    {ENDED.size * ENDED_COUNT}s ended
    {8 * HISTOGRAM_BUCKETS}s turn_histogram
    Q tally_turn tally_from tally_dropped
    {TALLY_ENTRY.size * TALLY_COUNT}s tally_entries
    """,
    size=8000,  # a multiple of the 64 bytes to which it is aligned
)

REF = Layout("lc_ref", "I offset bytes")

CODE = Layout("lc_code_entry", "8s filename qualname\nI first_line code_flags")

FRAME = Layout("lc_frame_entry", "I code line end_line\nH column end_column")

STACK = Layout("lc_stack_entry", "I frames flags\nQ hash")

SAMPLE = Layout(
    "lc_sample_entry",
    """
    Q at_ns epoch on_cpu_ns run_queue_ns voluntary_switches involuntary_switches major_faults
    q syscall
    24s syscall_args
    I stack holder_stack holder_tid
    B gil thread_state
    H flags
    Q gc_total_ns
    8s target
    I target_pid
    B target_kind lock_kind lock_proof lock_frame
    """,
)

THREAD = Layout("lc_thread_entry", "Q tid at_ns\nI stack\nB thread_state holds_gil waits_for_gil reserved")

THREAD_NAME = Layout("lc_thread_name_entry", "I tid before\n8s name")

WAIT = Layout(
    "lc_wait_entry",
    "I tid before holder_tid stack\n8s module\nB lock_kind lock_proof lock_frame has_timeout\n4s reserved",
)

HOST = Layout(
    "lc_host_entry",
    """
    Q at_ns told process_cpu_ns process_major_faults system_busy_ns system_total_ns
    Q throttled_ns throttled_periods pressure_cpu_ns pressure_io_ns pressure_memory_ns
    Q memory_available_bytes memory_used_bytes
    i nice
    H policy cores
    Q system_stolen_ns reserved
    """,
)

CONTRIBUTOR = Layout(
    "lc_contributor_entry", "8s name\nQ count total_ns longest_ns\n8s site_file\nQ site_line"
)

SLOT_FACTS = Layout(
    "lc_slot",
    f"""
    Q state serial lane lane_generation tid kind epoch turn_epoch begin_ns turn_begin_ns end_ns
    Q last_look_ns threshold_ns level interval_ns sample_count
    Q samples_dropped_moved samples_dropped_unreadable samples_dropped_full
    Q thread_count heap_used turn_callbacks turn_callback_ns longest_ns end_cpu_ns queue_ns
    Q gc_ns_begin allowance_ns
    {NAME_BYTES // 2}s loop_kind
    {NAME_BYTES}s thread_name
    8s callback task scene
    Q work_read_ns
    Q before_at_ns before_on_cpu_ns before_run_queue_ns
    Q host_count contributor_count contributors_from_ns contributors_dropped waiter_count
    {8 * SLOT_WAITERS_MAX}s waiters
    Q thread_names circle
    16s reserved
    """,
)

LOOK_COUNT: Final = 2
LOOK_BYTES: Final = 40960
LOOK_OFFSET: Final = SLOT_BYTES - LOOK_BYTES
LOOK_ENTRIES_MAX: Final = 64

LOOK_HELD = Layout("lc_look_held", "Q object\n8s function")

LOOK_AWAIT = Layout("lc_look_await", f"Q first\n{FRAME.size}s frame\nI held held_count")

LOOK_ENTRY = Layout(
    "lc_look_entry",
    """
    Q task loop future since_ns
    I count circle awaits
    H await_count
    B state cut
    8s name loop_type callback future_type future_callback end_type
    """,
)

LOOK = Layout(
    "lc_look",
    f"""
    Q began_ns tasks others groups circles entry_count
    {LOOK_ENTRY.size * LOOK_ENTRIES_MAX}s entries
    """,
)

KEEPER = Layout(
    "lc_keeper",
    f"""
    Q pid beat_ns
    I bell errands
    Q closed text_number text_bytes
    {8 * SLOT_COUNT}s taken
    {8 * SLOT_COUNT}s told
    {KEEPER_BYTES - KEEPER_TEXT_BYTES - 8 * (6 + 2 * SLOT_COUNT)}s room
    {KEEPER_TEXT_BYTES}s text
    """,
)

SLOT_THREADS_OFFSET: Final = 512
SLOT_HOSTS_OFFSET: Final = SLOT_THREADS_OFFSET + SLOT_THREADS_MAX * THREAD.size
SLOT_CONTRIBUTORS_OFFSET: Final = SLOT_HOSTS_OFFSET + HOST_MAX * HOST.size
SLOT_SAMPLES_OFFSET: Final = SLOT_CONTRIBUTORS_OFFSET + TALLY_COUNT * CONTRIBUTOR.size
SLOT_HEAP_OFFSET: Final = SLOT_SAMPLES_OFFSET + SAMPLE_MAX * SAMPLE.size
