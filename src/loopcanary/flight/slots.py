"""Slots: one stall each, as the watchdog recorded it, before it is joined with the rest of the file."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from loopcanary.flight import format as layout
from loopcanary.flight.format import Gil, LockKind, SlotState
from loopcanary.flight.header import Section, bounded
from loopcanary.flight.heap import SlotHeap
from loopcanary.flight.lanes import text_of
from loopcanary.flight.source import ByteSource
from loopcanary.model import (
    CallbackNames,
    Contributor,
    GilState,
    HostReading,
    KernelView,
    LockProof,
    LockView,
    Sample,
    Scheduler,
    Target,
    TargetKind,
    ThreadReading,
    ThreadStack,
    ThreadWait,
)
from loopcanary.model.waiting import (
    FUTURE,
    IMPORT_LOCK,
    SHARED_LOCK,
    SHARED_RLOCK,
    SHARED_SEMAPHORE,
    THREAD_END,
)

_TRIES: Final = 8
_SYSCALL_ARGS: Final = struct.Struct("<3Q")
_TAKEN: Final = (SlotState.OPEN, SlotState.STALL, SlotState.ENDED)
_GIL: Final = {Gil.FREE: GilState.FREE, Gil.HELD_BY_SELF: GilState.SELF, Gil.HELD_BY_OTHER: GilState.OTHER}

# What must stand still while a slot is copied: whose stall it is, how far it has come, the interval
# (samples are thinned when it doubles), and what is not written in one store.
_GUARDS: Final = (
    "state",
    "serial",
    "kind",
    "epoch",
    "turn_epoch",
    "begin_ns",
    "turn_begin_ns",
    "end_ns",
    "interval_ns",
    "work_read_ns",
    "before_at_ns",
    "host_count",
    "contributor_count",
)


class SlotCopy:
    """One slot as it was at one moment; `facts` are the fields of lc_slot by name."""

    def __init__(self, facts: Mapping[str, Any], data: bytes) -> None:
        """`facts` were read before `data`, so what they count is whole in it."""
        self.facts = facts
        self.heap = SlotHeap(data, facts["heap_used"])
        self._data = data

    @property
    def state(self) -> SlotState:
        return SlotState(self.facts["state"])

    @property
    def loop_kind(self) -> str:
        return text_of(self.facts["loop_kind"])

    @property
    def thread_name(self) -> str:
        return text_of(self.facts["thread_name"])

    def names(self) -> CallbackNames | None:
        """Names of the work, None where they were not read."""
        if not self.facts["work_read_ns"]:
            return None
        callback, task = self.heap.text(self.facts["callback"]), self.heap.text(self.facts["task"])
        name = callback or task
        return None if name is None else CallbackNames(name=name, task=task)

    def scene(self) -> str | None:
        return self.heap.text(self.facts["scene"])

    def dropped(self) -> tuple[tuple[str, int], ...]:
        """(reason, count) of samples that were taken and not kept."""
        reasons = ("moved", "unreadable", "full")
        counts = ((reason, bounded(self.facts[f"samples_dropped_{reason}"])) for reason in reasons)
        return tuple((reason, count) for reason, count in counts if count)

    def samples(self, begin_ns: int, end_ns: int, epoch: int | None) -> tuple[Sample, ...]:
        """Samples in [begin, end] by time; with an epoch, only those of that callback.

        Two of the same time are one: the watchdog moves samples together when it thins them.
        """
        count = min(self.facts["sample_count"], layout.SAMPLE_MAX)
        end = layout.SLOT_SAMPLES_OFFSET + count * layout.SAMPLE.size
        view = memoryview(self._data)[layout.SLOT_SAMPLES_OFFSET : end]
        found = {}
        for fields in layout.SAMPLE.struct.iter_unpack(view):
            at_ns = fields[0]
            if begin_ns <= at_ns <= end_ns and (epoch is None or fields[1] == epoch):
                found[at_ns] = self._sample(fields)
        return tuple(found[at_ns] for at_ns in sorted(found))

    def before(self, begin_ns: int) -> ThreadReading | None:
        """The thread's counters at the last look before the stall, None where there was no look."""
        at_ns = bounded(self.facts["before_at_ns"])
        if not 0 < at_ns <= begin_ns:
            return None
        kernel = KernelView(
            on_cpu_ns=bounded(self.facts["before_on_cpu_ns"]),
            run_queue_ns=bounded(self.facts["before_run_queue_ns"]),
        )
        return ThreadReading(at_ns=at_ns, kernel=kernel)

    def hosts(self) -> tuple[HostReading, ...]:
        """Readings of process, container and machine, ascending; of two at the same time, one."""
        view = self._table(layout.SLOT_HOSTS_OFFSET, layout.HOST, self.facts["host_count"], layout.HOST_MAX)
        found = {reading.at_ns: reading for reading in map(host_reading, layout.HOST.every(view))}
        return tuple(found[at_ns] for at_ns in sorted(found))

    def contributors(self) -> tuple[tuple[Contributor, ...], int]:
        """Callbacks of the turn by name, most time first; and how many there are without one."""
        count = self.facts["contributor_count"]
        view = self._table(layout.SLOT_CONTRIBUTORS_OFFSET, layout.CONTRIBUTOR, count, layout.TALLY_COUNT)
        dropped = bounded(self.facts["contributors_dropped"])
        by_name: dict[str, Contributor] = {}
        for fields in layout.CONTRIBUTOR.every(view):
            name, number = self.heap.text(fields["name"]), bounded(fields["count"])
            if name is None:
                dropped += number
            elif number:
                joined = _joined(by_name.get(name), name, number, fields)
                by_name[name] = self._with_scheduler(joined, number, fields)
        ranked = sorted(by_name.values(), key=lambda one: (-one.total_ns, one.name))
        return tuple(ranked), bounded(dropped)

    def _with_scheduler(self, joined: Contributor, count: int, fields: dict[str, Any]) -> Contributor:
        file, line = self.heap.text(fields["site_file"]), bounded(fields["site_line"])
        if file is None:
            return joined
        counts = {(one.file, one.line): one.count for one in joined.scheduled}
        counts[file, line] = bounded(counts.get((file, line), 0) + count)
        ranked = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
        schedulers = [Scheduler(file=file, line=line, count=count) for (file, line), count in ranked]
        return replace(joined, scheduled=tuple(schedulers))

    def waiters(self) -> tuple[tuple[int, ...], int]:
        """Other threads that waited for the same lock: the first of them, and how many there were."""
        count = bounded(self.facts["waiter_count"])
        tids = struct.unpack(f"<{layout.SLOT_WAITERS_MAX}Q", self.facts["waiters"])
        return tuple(bounded(tid) for tid in tids[:count]), count

    def circle(self) -> tuple[ThreadWait, ...]:
        """The threads of the circle, from the stalled one on, and what each waits for."""
        return tuple(
            ThreadWait(
                tid=tid,
                lock=lock,
                holder_tid=holder_tid,
                stack=self.heap.stack(stack),
                has_timeout=bool(has_timeout),
            )
            for tid, _, holder_tid, stack, module, kind, proof, frame, has_timeout, _ in self.heap.waits(
                self.facts["circle"]
            )
            if (lock := lock_view(kind, proof, self.heap.text(module), frame)) is not None
        )

    def thread_names(self) -> tuple[tuple[int, str], ...]:
        """(thread id, name) of holders, and of all threads of a hang, as they were called then."""
        return self.heap.thread_names(self.facts["thread_names"])

    def threads(self, thread_names: Mapping[int, str]) -> tuple[ThreadStack, ...]:
        """All threads, the stalled one included, as they were read last: when the stall became a hang, or a
        signal came."""
        count = min(self.facts["thread_count"], layout.SLOT_THREADS_MAX)
        end = layout.SLOT_THREADS_OFFSET + count * layout.THREAD.size
        view = memoryview(self._data)[layout.SLOT_THREADS_OFFSET : end]
        last = {entry[0]: entry for entry in layout.THREAD.struct.iter_unpack(view)}
        return tuple(
            ThreadStack(
                tid=bounded(tid),
                at_ns=bounded(at_ns),
                name=thread_names.get(tid, ""),
                stack=self.heap.stack(stack),
                thread_state=_letter(state),
                holds_gil=bool(holds),
                waits_for_gil=bool(waits),
            )
            for tid, at_ns, stack, state, holds, waits, _ in last.values()
        )

    def _table(self, offset: int, entry: layout.Layout, count: int, most: int) -> memoryview:
        return memoryview(self._data)[offset : offset + min(count, most) * entry.size]

    def _sample(self, fields: tuple[Any, ...]) -> Sample:
        (at_ns, _epoch, on_cpu, queue, voluntary, involuntary, faults, syscall, syscall_args) = fields[:9]
        (stack, holder_stack, holder_tid, gil, thread_state, flags, gc_total) = fields[9:16]
        (target_ref, target_pid, target_kind, lock_kind, lock_proof, lock_frame) = fields[16:]
        target = lock = None
        if target_kind or lock_kind:
            target_name = self.heap.text(target_ref)
            target = target_of(target_kind, target_name, target_pid)
            lock = lock_view(lock_kind, lock_proof, target_name, lock_frame)
        kernel = None
        if not flags & layout.SAMPLE_NO_KERNEL_VIEW:
            kernel = KernelView(
                on_cpu_ns=bounded(on_cpu),
                run_queue_ns=bounded(queue),
                voluntary_switches=bounded(voluntary),
                involuntary_switches=bounded(involuntary),
                major_faults=bounded(faults),
                thread_state=_letter(thread_state),
                syscall=syscall if syscall >= 0 else None,
                syscall_args=_SYSCALL_ARGS.unpack(syscall_args),
            )
        return Sample(
            at_ns=at_ns,
            stack=self.heap.stack(stack),
            kernel=kernel,
            gil=_GIL.get(gil, GilState.UNKNOWN),
            waits_for_gil=bool(flags & layout.SAMPLE_WAITS_FOR_GIL),
            in_gc=bool(flags & layout.SAMPLE_GC),
            calls_python=bool(flags & layout.SAMPLE_CALLS_PYTHON),
            in_circle=bool(flags & layout.SAMPLE_IN_CIRCLE),
            holder_tid=holder_tid or None,
            holder_stack=self.heap.stack(holder_stack),
            gc_total_ns=bounded(gc_total),
            target=target,
            lock=lock,
        )


def _joined(known: Contributor | None, name: str, count: int, fields: dict[str, Any]) -> Contributor:
    """Two kinds of callbacks may go by one name: functions that are defined again and again do."""
    total_ns, longest_ns = bounded(fields["total_ns"]), bounded(fields["longest_ns"])
    if known is not None:
        count, total_ns = known.count + count, known.total_ns + total_ns
        longest_ns = max(known.longest_ns, longest_ns)
    return Contributor(
        name=name,
        count=bounded(count),
        total_ns=bounded(total_ns),
        longest_ns=longest_ns,
        scheduled=() if known is None else known.scheduled,
    )


def read_slot_facts(source: ByteSource, section: Section, index: int) -> dict[str, Any]:
    """The facts of a slot without its samples."""
    return layout.SLOT_FACTS.read(source.read(section.at(index), layout.SLOT_FACTS.size))


def copy_slot(
    source: ByteSource, section: Section, index: int, *, drained: bool = False, taken: int = 0
) -> SlotCopy | None:
    """A slot that did not change while it was copied; None if it is free or changed at every try.

    `drained`: also a stall that is over and was taken by the drain or a keeper; it stays there until the slot
    is needed again, and its end is the first thing that is wiped then. `taken`: serial of the last stall that
    the keeper has stored.
    """
    for _ in range(_TRIES):
        before = read_slot_facts(source, section, index)
        state = before["state"]
        is_free = state not in _TAKEN or (state == SlotState.ENDED and before["serial"] == taken != 0)
        left = drained and state in (SlotState.FREE, SlotState.ENDED) and before["end_ns"]
        if is_free and not left:
            return None
        data = source.read(section.at(index), section.stride)
        after = read_slot_facts(source, section, index)
        if all(before[name] == after[name] for name in _GUARDS):
            return SlotCopy(before, data)
    return None


@lru_cache(maxsize=256)
def _letter(code: int) -> str:
    letter = chr(code)
    return letter if letter.isascii() and letter.isalpha() else ""


_BITS: Final = {
    "process_cpu_ns": layout.HOST_PROCESS_CPU,
    "process_major_faults": layout.HOST_MAJOR_FAULTS,
    "system_busy_ns": layout.HOST_SYSTEM,
    "system_total_ns": layout.HOST_SYSTEM,
    "system_stolen_ns": layout.HOST_SYSTEM,
    "throttled_ns": layout.HOST_THROTTLED,
    "throttled_periods": layout.HOST_THROTTLED,
    "pressure_cpu_ns": layout.HOST_PRESSURE_CPU,
    "pressure_io_ns": layout.HOST_PRESSURE_IO,
    "pressure_memory_ns": layout.HOST_PRESSURE_MEMORY,
    "memory_available_bytes": layout.HOST_AVAILABLE,
    "memory_used_bytes": layout.HOST_USED,
}


def host_reading(fields: dict[str, Any]) -> HostReading:
    """One entry of a slot's hosts; what the kernel did not give is None."""
    told = fields["told"]
    known = {name: bounded(fields[name]) for name, bit in _BITS.items() if told & bit}
    if told & layout.HOST_PRIORITY:
        known |= {name: fields[name] for name in ("nice", "policy", "cores")}
    return HostReading(at_ns=bounded(fields["at_ns"]), **known)


_TARGETS: Final = {
    layout.TargetCode.FILE: TargetKind.FILE,
    layout.TargetCode.SOCKET: TargetKind.SOCKET,
    layout.TargetCode.PIPE: TargetKind.PIPE,
    layout.TargetCode.TERMINAL: TargetKind.TERMINAL,
    layout.TargetCode.CHILD: TargetKind.CHILD,
    layout.TargetCode.OTHER: TargetKind.OTHER,
}
_LOCKS: Final = {
    LockKind.PLAIN: "lock",
    LockKind.RECURSIVE: "RLock",
    LockKind.MODULE: IMPORT_LOCK,
    LockKind.THREAD: THREAD_END,
    LockKind.FUTURE: FUTURE,
    LockKind.SHARED: SHARED_LOCK,
    LockKind.SHARED_RECURSIVE: SHARED_RLOCK,
    LockKind.SHARED_SEMAPHORE: SHARED_SEMAPHORE,
}
_PROOFS: Final = {layout.ProofCode.OWNER: LockProof.OWNER, layout.ProofCode.WITH: LockProof.WITH}


# Each sample of a wait says the same: what is equal is one object.
@lru_cache(maxsize=64)
def target_of(kind: int, name: str | None, pid: int) -> Target | None:
    """What the system call worked on; None for none, and for a kind that has no name here."""
    known = _TARGETS.get(kind)  # type: ignore[call-overload]
    return None if known is None else Target(kind=known, name=name or "", pid=pid or None)


@lru_cache(maxsize=64)
def lock_view(kind: int, proof: int, module: str | None, frame: int) -> LockView | None:
    """The lock that was waited for. `module`: whose import lock it is, where it is one. `frame`: as in
    `lc_sample_entry`."""
    known = _LOCKS.get(kind)  # type: ignore[call-overload]
    if known is None:
        return None
    if kind == LockKind.MODULE and module:
        known = f"{known} of {module}"
    return LockView(kind=known, proof=_PROOFS.get(proof, LockProof.NONE), taken_at=frame or None)  # type: ignore[call-overload]
