"""Makes valid flight files out of model values, for tests of all that reads them.

    flight = FlightBuilder(pid=41, facts={"name": "shop"})
    lane = flight.add_lane(thread_name="MainThread")
    flight.add_stall(evidence, lane=lane)
    flight.write(tmp_path / "41.flight")

One tick is a nanosecond unless `rate_q32` says otherwise. Written from src/loopcanary/flight/format.py alone,
and with none of the reader's code.
"""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loopcanary.flight import format as layout
from loopcanary.flight.format import EndedKind, LaneState, ProcessState, SectionKind, SlotState
from loopcanary.model import (
    Collection,
    Contributor,
    Frame,
    GilState,
    HostReading,
    LockProof,
    Sample,
    Stack,
    StallEvidence,
    StallScope,
    TargetKind,
    ThreadStack,
    ThreadWait,
)
from loopcanary.model.task_reads import TaskAwait, TaskRead

BOOT_ID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
PAGE = 4096

_GIL = {GilState.UNKNOWN: 0, GilState.FREE: 1, GilState.SELF: 2, GilState.OTHER: 3}
_TARGET = {kind: getattr(layout.TargetCode, kind.name) for kind in TargetKind}
_LOCK = {"lock": 1, "RLock": 2, "import lock": 3, "thread": 4, "Future": 5}
_PROOF = {proof: getattr(layout.ProofCode, proof.name) for proof in LockProof}
HOST_BITS = {
    "process_cpu_ns": 1,
    "process_major_faults": 2,
    "system_busy_ns": 4,
    "system_total_ns": 4,
    "system_stolen_ns": 4,
    "throttled_ns": 8,
    "throttled_periods": 8,
    "pressure_cpu_ns": 16,
    "pressure_io_ns": 32,
    "pressure_memory_ns": 64,
    "memory_available_bytes": 128,
    "memory_used_bytes": 256,
    "nice": 512,
    "policy": 512,
    "cores": 512,
}
_KIND = {
    StallScope.CALLBACK: EndedKind.CALLBACK,
    StallScope.TURN: EndedKind.TURN,
    StallScope.THREAD: EndedKind.FAULT,
}


class FlightBuilder:
    """A flight file under construction; `bytes(builder)` or `write` gives it."""

    def __init__(
        self,
        *,
        facts: Mapping[str, Any] | None = None,
        lane_room: int = 4,
        slot_room: int = 3,
        rate_q32: int = 1 << 32,
        **header: Any,
    ) -> None:
        """`header`: fields of lc_header that differ from those of a process 41 that runs."""
        self._sections: dict[SectionKind, tuple[int, int]] = {}
        self.data = bytearray(layout.HEADER_BYTES)
        self._lay_out(lane_room, slot_room)
        self.put_header(
            magic=layout.MAGIC,
            version=layout.VERSION,
            byte_order=layout.BYTE_ORDER_MARK,
            file_bytes=len(self.data),
            pid=41,
            parent_pid=1,
            process_start=777,
            pid_namespace=4026531836,
            boot_id=uuid.UUID(BOOT_ID).bytes,
            state=ProcessState.RUNNING,
            started_ns=1_000,
            anchor_wall_ns=1_700_000_000_000_000_000,
            tick_ns_q32=rate_q32,
        )
        self.put_header(**header)
        self._serial = 0
        self._lanes = 0
        self._slots = 0
        self._collections = 0
        if facts is not None:
            self.put_facts(json.dumps(facts).encode())

    def __bytes__(self) -> bytes:
        return bytes(self.data)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.data)
        path.chmod(0o600)
        return path

    def put_header(self, **fields: Any) -> None:
        put(self.data, layout.HEADER, 0, fields)

    def put_section(self, kind: SectionKind, **fields: int) -> None:
        put(self.data, layout.SECTION, layout.HEADER.offsets["sections"] + kind * layout.SECTION.size, fields)

    def put_facts(self, text: bytes) -> None:
        at = self.at(SectionKind.FACTS)
        self.data[at : at + len(text)] = text
        self.put_section(SectionKind.FACTS, used=len(text))

    def put_counters(self, **counters: int) -> None:
        for name, value in counters.items():
            at = self.at(SectionKind.COUNTERS) + 8 * layout.COUNTERS.index(name)
            struct.pack_into("<Q", self.data, at, value)

    def add_collection(self, collection: Collection) -> None:
        self._collections += 1
        at = self.at(SectionKind.GC, (self._collections - 1) % layout.GC_COUNT)
        fields = {
            "sequence": self._collections,
            "begin_ns": collection.begin_ns,
            "end_ns": collection.end_ns,
            "tid": collection.tid,
            "generation": collection.generation,
            "collected": collection.collected,
            "uncollectable": collection.uncollectable,
        }
        put(self.data, layout.GC_ENTRY, at, fields)
        self.put_section(SectionKind.GC, used=self._collections)

    def add_lane(self, *, loop_kind: str = "asyncio", thread_name: str = "MainThread", **fields: Any) -> int:
        """A lane of a thread 41 that has done nothing yet; `fields` are those of lc_lane. Gives its index."""
        index, self._lanes = self._lanes, self._lanes + 1
        self.put_section(SectionKind.LANES, used=self._lanes)
        defaults = {"state": LaneState.ACTIVE, "tid": 41, "generation": 1, "threshold": 100_000_000}
        names = {"loop_kind": loop_kind.encode(), "thread_name": thread_name.encode()}
        self.put_lane(index, **{**defaults, **names, **fields})
        return index

    def put_lane(self, index: int, **fields: Any) -> None:
        put(self.data, layout.LANE, self.at(SectionKind.LANES, index), fields)

    def put_histogram(self, lane: int, counts: Mapping[int, int]) -> None:
        at = self.at(SectionKind.LANES, lane) + layout.LANE.offsets["turn_histogram"]
        for bucket, count in counts.items():
            struct.pack_into("<Q", self.data, at + 8 * bucket, count)

    def add_ended(
        self, lane: int, *, sequence: int = 1, scope: StallScope = StallScope.CALLBACK, **fields: int
    ) -> None:
        """What the lane's thread records at the end of a stall; `fields` are those of lc_ended."""
        place = (sequence - 1) % layout.ENDED_COUNT
        self.put_ended(lane, place, sequence=sequence, kind=_KIND[scope], **fields)
        self.put_lane(lane, ended_count=sequence)

    def put_ended(self, lane: int, place: int, **fields: int) -> None:
        ring = self.at(SectionKind.LANES, lane) + layout.LANE.offsets["ended"]
        put(self.data, layout.ENDED, ring + place * layout.ENDED.size, fields)

    def add_long_work(
        self, lane: int, *, sequence: int, kind: EndedKind = EndedKind.CALLBACK, **fields: Any
    ) -> None:
        """What the lane's thread records of long work; `fields` are those of lc_long_work."""
        at = self.long_work_at(lane, sequence)
        put(self.data, layout.LONG_WORK, at, {"sequence": sequence, "kind": kind, **fields})
        self.put_lane(lane, long_count=sequence, long_limit=1_000_000)

    def long_work_at(self, lane: int, sequence: int) -> int:
        place = (sequence - 1) % layout.LONG_WORK_COUNT
        return self.at(SectionKind.LANES, lane) + layout.LONG_WORK_OFFSET + place * layout.LONG_WORK.size

    def add_stall(
        self,
        evidence: StallEvidence,
        *,
        lane: int | None = None,
        state: SlotState | None = None,
        epoch: int | None = None,
        turn_epoch: int = 7,
        **fields: Any,
    ) -> int:
        """A slot with this stall. Gives its index.

        Without a lane it gets one of its own, whose thread is in the stall still if the evidence has no
        end. `state`: ENDED or STALL by the evidence's end. `fields` are those of lc_slot.
        """
        index, self._slots = self._slots, self._slots + 1
        self.put_section(SectionKind.SLOTS, used=self._slots)
        if epoch is None:
            epoch = 5 if evidence.scope is StallScope.CALLBACK else 0
        if lane is None:
            lane = self._add_lane_of(evidence, epoch, turn_epoch)
        if state is None:
            state = SlotState.STALL if evidence.end_ns is None else SlotState.ENDED
        slot = SlotBuilder(self.data, self.at(SectionKind.SLOTS, index))
        slot.put_evidence(evidence, epoch)
        slot.put(state=state, lane=lane, lane_generation=1, epoch=epoch, turn_epoch=turn_epoch, **fields)
        return index

    def put_slot(self, index: int, **fields: Any) -> None:
        put(self.data, layout.SLOT_FACTS, self.at(SectionKind.SLOTS, index), fields)

    def _add_lane_of(self, evidence: StallEvidence, epoch: int, turn_epoch: int) -> int:
        over = evidence.end_ns is not None
        return self.add_lane(
            loop_kind=evidence.loop_kind,
            thread_name=evidence.thread_name,
            tid=evidence.tid,
            threshold=evidence.threshold_ns,
            epoch=epoch + over,
            turn_epoch=turn_epoch + over,
            begin=evidence.begin_ns,
            turn_begin=evidence.turn_begin_ns or evidence.begin_ns,
        )

    def put_keeper(self, *, taken: Mapping[int, int] | None = None, **fields: Any) -> None:
        """`taken`: serials by slot; `fields` are those of lc_keeper."""
        at = self.at(SectionKind.KEEPER)
        put(self.data, layout.KEEPER, at, fields)
        for slot, serial in (taken or {}).items():
            struct.pack_into("<Q", self.data, at + layout.KEEPER.offsets["taken"] + 8 * slot, serial)

    def as_version_1(self) -> bytes:
        """The same file as version 1 had it: five sections, and a header that ends behind them."""
        old = bytearray(self.data[: self.at(SectionKind.KEEPER)])
        end = layout.HEADER.offsets["sections"] + SectionKind.KEEPER * layout.SECTION.size
        old[end : layout.HEADER_BYTES] = bytes(layout.HEADER_BYTES - end)
        put(old, layout.HEADER, 0, {"version": 1, "file_bytes": len(old)})
        return bytes(old)

    def at(self, kind: SectionKind, index: int = 0) -> int:
        offset, stride = self._sections[kind]
        return offset + index * stride

    def _lay_out(self, lane_room: int, slot_room: int) -> None:
        shapes = {
            SectionKind.FACTS: (layout.FACTS_BYTES, 1),
            SectionKind.COUNTERS: (8, layout.COUNTER_ROOM),
            SectionKind.GC: (layout.GC_ENTRY.size, layout.GC_COUNT),
            SectionKind.LANES: (layout.LANE_BYTES, lane_room),
            SectionKind.SLOTS: (layout.SLOT_BYTES, slot_room),
            SectionKind.KEEPER: (layout.KEEPER_BYTES, 1),
        }
        at = layout.HEADER_BYTES
        for kind, (stride, count) in shapes.items():
            multiple = layout.KEEPER_ALIGNMENT if kind is SectionKind.KEEPER else PAGE
            at = -(-at // multiple) * multiple
            self._sections[kind] = (at, stride)
            self.put_section(kind, offset=at, stride=stride, count=count)
            at += stride * count
        self.data.extend(bytes(at - layout.HEADER_BYTES))


class SlotBuilder:
    """One slot: interns strings, codes and stacks as the native writer does."""

    def __init__(self, data: bytearray, at: int) -> None:
        self._data = data
        self._at = at
        self._heap_used = layout.SLOT_HEAP_OFFSET
        self._known: dict[object, Any] = {}
        self.put(heap_used=self._heap_used)

    @classmethod
    def resumed(cls, data: bytearray, at: int) -> SlotBuilder:
        """One that goes on where the slot's heap ends."""
        used = layout.SLOT_FACTS.read(data, at)["heap_used"]
        slot = cls(data, at)
        slot._heap_used = used
        slot.put(heap_used=used)
        return slot

    def put(self, **fields: Any) -> None:
        put(self._data, layout.SLOT_FACTS, self._at, fields)

    def put_evidence(self, evidence: StallEvidence, epoch: int) -> None:
        names, dropped = evidence.names, dict(evidence.samples_dropped)
        self.put(
            serial=evidence.serial,
            tid=evidence.tid,
            kind=_KIND[evidence.scope],
            begin_ns=evidence.begin_ns,
            turn_begin_ns=evidence.turn_begin_ns or 0,
            end_ns=evidence.end_ns or 0,
            last_look_ns=evidence.last_look_ns,
            threshold_ns=evidence.threshold_ns,
            interval_ns=evidence.sample_interval_ns,
            samples_dropped_moved=dropped.get("moved", 0),
            samples_dropped_unreadable=dropped.get("unreadable", 0),
            samples_dropped_full=dropped.get("full", 0),
            turn_callbacks=evidence.turn_callbacks,
            turn_callback_ns=evidence.turn_callback_ns,
            longest_ns=evidence.longest_callback_ns,
            end_cpu_ns=evidence.end_cpu_ns or 0,
            queue_ns=evidence.queue_ns,
            allowance_ns=evidence.allowance_ns,
            loop_kind=evidence.loop_kind.encode(),
            thread_name=evidence.thread_name.encode(),
            callback=self.text(names.name if names else None),
            task=self.text(names.task if names else None),
            scene=self.text(evidence.scene),
            work_read_ns=evidence.begin_ns + 1 if names else 0,
        )
        if evidence.before is not None:
            self.put(
                before_at_ns=evidence.before.at_ns,
                before_on_cpu_ns=evidence.before.kernel.on_cpu_ns,
                before_run_queue_ns=evidence.before.kernel.run_queue_ns,
            )
        self.put(
            contributors_from_ns=evidence.contributors_from_ns or 0,
            contributors_dropped=evidence.contributors_dropped,
            waiter_count=evidence.waiter_count,
            waiters=struct.pack(f"<{len(evidence.waiters)}Q", *evidence.waiters),
        )
        for index, host in enumerate(evidence.host):
            self.put_host(index, host)
        for index, contributor in enumerate(evidence.contributors):
            self.put_contributor(index, contributor)
        for index, sample in enumerate(evidence.samples):
            self.put_sample(index, sample, epoch)
        for index, thread in enumerate(evidence.threads):
            self.put_thread(index, thread)
        for tid, name in evidence.thread_names:
            self.put_thread_name(tid, name)
        for wait in evidence.circle:
            self.put_wait(wait)

    def put_sample(self, index: int, sample: Sample, epoch: int) -> None:
        flags = layout.SAMPLE_WAITS_FOR_GIL * sample.waits_for_gil | layout.SAMPLE_GC * sample.in_gc
        flags |= layout.SAMPLE_CALLS_PYTHON * sample.calls_python
        flags |= layout.SAMPLE_IN_CIRCLE * sample.in_circle
        fields: dict[str, Any] = {
            "at_ns": sample.at_ns,
            "epoch": epoch,
            "syscall": layout.SYSCALL_UNKNOWN,
            "stack": self.stack(sample.stack),
            "holder_stack": self.stack(sample.holder_stack),
            "holder_tid": sample.holder_tid or 0,
            "gil": _GIL[sample.gil],
            "flags": flags | layout.SAMPLE_NO_KERNEL_VIEW * (sample.kernel is None),
            "gc_total_ns": sample.gc_total_ns,
            **self._wait(sample),
        }
        if (kernel := sample.kernel) is not None:
            fields |= {
                "on_cpu_ns": kernel.on_cpu_ns,
                "run_queue_ns": kernel.run_queue_ns,
                "voluntary_switches": kernel.voluntary_switches,
                "involuntary_switches": kernel.involuntary_switches,
                "major_faults": kernel.major_faults,
                "thread_state": ord(kernel.thread_state or "\0"),
                "syscall": layout.SYSCALL_RUNNING if kernel.syscall is None else kernel.syscall,
                "syscall_args": struct.pack("<3Q", *kernel.syscall_args),
            }
        put(
            self._data,
            layout.SAMPLE,
            self._at + layout.SLOT_SAMPLES_OFFSET + index * layout.SAMPLE.size,
            fields,
        )
        self.put(sample_count=index + 1)

    def _wait(self, sample: Sample) -> dict[str, Any]:
        target, lock = sample.target, sample.lock
        fields: dict[str, Any] = {"target": bytes(layout.REF.size)}
        if target is not None:
            fields = {
                "target": self.text(target.name),
                "target_kind": _TARGET[target.kind],
                "target_pid": target.pid or 0,
            }
        if lock is not None:
            kind, _, module = lock.kind.partition(" of ")
            fields |= {
                "lock_kind": _LOCK[kind],
                "lock_proof": _PROOF[lock.proof],
                "lock_frame": lock.taken_at or 0,
            }
            if module:
                fields["target"] = self.text(module)
        return fields

    def put_host(self, index: int, host: HostReading) -> None:
        told = {name: getattr(host, name) for name in HOST_BITS if getattr(host, name) is not None}
        bits = 0
        for name in told:
            bits |= HOST_BITS[name]
        at = self._at + layout.SLOT_HOSTS_OFFSET + index * layout.HOST.size
        put(self._data, layout.HOST, at, {"at_ns": host.at_ns, "told": bits, **told})
        self.put(host_count=index + 1)

    def put_contributor(self, index: int, contributor: Contributor) -> None:
        """Of one that one place scheduled at most: others are as many contributors."""
        (site,) = contributor.scheduled or (None,)
        fields = {
            "name": self.text(contributor.name),
            "count": contributor.count,
            "total_ns": contributor.total_ns,
            "longest_ns": contributor.longest_ns,
            "site_file": self.text(None if site is None else site.file),
            "site_line": 0 if site is None else site.line,
        }
        at = self._at + layout.SLOT_CONTRIBUTORS_OFFSET + index * layout.CONTRIBUTOR.size
        put(self._data, layout.CONTRIBUTOR, at, fields)
        self.put(contributor_count=index + 1)

    def put_thread(self, index: int, thread: ThreadStack) -> None:
        fields = {
            "tid": thread.tid,
            "at_ns": thread.at_ns,
            "stack": self.stack(thread.stack),
            "thread_state": ord(thread.thread_state or "\0"),
            "holds_gil": thread.holds_gil,
            "waits_for_gil": thread.waits_for_gil,
        }
        put(
            self._data,
            layout.THREAD,
            self._at + layout.SLOT_THREADS_OFFSET + index * layout.THREAD.size,
            fields,
        )
        self.put(thread_count=index + 1)

    def put_thread_name(self, tid: int, name: str) -> None:
        before = layout.SLOT_FACTS.read(self._data, self._at)["thread_names"]
        ref = self.text(name)
        self.put(thread_names=self.store(struct.pack("<II", tid, before) + ref))

    def put_wait(self, wait: ThreadWait) -> None:
        before = layout.SLOT_FACTS.read(self._data, self._at)["circle"]
        kind, _, module = wait.lock.kind.partition(" of ")
        entry = bytearray(layout.WAIT.size)
        fields = {
            "tid": wait.tid,
            "before": before,
            "holder_tid": wait.holder_tid,
            "stack": self.stack(wait.stack),
            "module": self.text(module),
            "lock_kind": _LOCK[kind],
            "lock_proof": _PROOF[wait.lock.proof],
            "lock_frame": wait.lock.taken_at or 0,
            "has_timeout": wait.has_timeout,
        }
        put(entry, layout.WAIT, 0, fields)
        self.put(circle=self.store(bytes(entry)))

    def stack(self, stack: Stack | None) -> int:
        if stack is None:
            return layout.NO_REF
        if stack not in self._known:
            frames = b"".join(self._frame(frame) for frame in stack.frames)
            flags = layout.STACK_TRUNCATED * stack.truncated | layout.STACK_INNER_CUT * stack.inner_cut
            head = layout.STACK.struct.pack(len(stack.frames), flags, hash(stack) & (1 << 64) - 1)
            self._known[stack] = self.store(head + frames)
        return self._known[stack]

    def text(self, text: str | None) -> bytes:
        if not text:
            return bytes(layout.REF.size)
        if text not in self._known:
            raw = text.encode()[: layout.STRING_MAX].decode("utf-8", "ignore").encode()
            self._known[text] = layout.REF.struct.pack(self.store(raw), len(raw))
        return self._known[text]

    def store(self, raw: bytes) -> int:
        """Puts bytes on the heap; gives their offset in the slot."""
        offset = (self._heap_used + 7) & ~7
        if offset + len(raw) > layout.SLOT_BYTES:
            raise ValueError("the slot's heap is full")
        self._data[self._at + offset : self._at + offset + len(raw)] = raw
        self._heap_used = offset + len(raw)
        self.put(heap_used=self._heap_used)
        return offset

    def _frame(self, frame: Frame) -> bytes:
        code = ("code", frame.file, frame.qualname, frame.first_line, frame.code_flags)
        if code not in self._known:
            refs = self.text(frame.file), self.text(frame.qualname)
            self._known[code] = self.store(layout.CODE.struct.pack(*refs, frame.first_line, frame.code_flags))
        position = (frame.line, frame.end_line, frame.column, frame.end_column)
        return layout.FRAME.struct.pack(self._known[code], *position)


def put(data: bytearray, record: layout.Layout, at: int, fields: Mapping[str, Any]) -> None:
    """Stores fields of one record, whose first byte is at `at`."""
    for name, value in fields.items():
        struct.pack_into("<" + record.codes[name], data, at + record.offsets[name], value)


class LookBuilder:
    """A look at tasks, at the end of a flight file under construction."""

    def __init__(self, flight: FlightBuilder) -> None:
        self._flight = flight
        self.at = len(flight.data)
        self._used = layout.LOOK_OFFSET + layout.LOOK.size
        flight.data += bytes(2 * layout.SLOT_BYTES)
        places = {"offset": self.at, "stride": layout.SLOT_BYTES, "count": 2, "used": 2}
        put(flight.data, layout.SECTION, layout.HEADER.offsets["looks"], places)

    def put(self, tasks: Sequence[TaskRead], *, half: int = 0, serial: int = 1, **look: int) -> None:
        """The tasks, in this order, as the look with this serial. `look`: other fields of lc_look."""
        at = self.at + half * layout.SLOT_BYTES
        for number, task in enumerate(tasks):
            entry = layout.LOOK_OFFSET + layout.LOOK.offsets["entries"] + number * layout.LOOK_ENTRY.size
            put(self._flight.data, layout.LOOK_ENTRY, at + entry, self._entry(at, task))
        head = {"began_ns": 1, "tasks": len(tasks), "groups": len(tasks), "entry_count": len(tasks)}
        put(self._flight.data, layout.LOOK, at + layout.LOOK_OFFSET, head | look)
        put(self._flight.data, layout.SLOT_FACTS, at, {"serial": serial, "heap_used": self._used})

    def _entry(self, at: int, task: TaskRead) -> dict[str, Any]:
        awaits = b"".join(self._await(at, one) for one in task.awaits)
        names = ("name", "loop_type", "callback", "future_type", "future_callback", "end_type")
        return {
            "task": task.address,
            "loop": task.loop,
            "future": task.future,
            "since_ns": task.since_ns or 0,
            "count": task.count,
            "awaits": self._append(at, awaits),
            "await_count": len(task.awaits),
            "state": task.state,
            "cut": task.cut,
            **{name: self._text(at, getattr(task, name)) for name in names},
        }

    def _await(self, at: int, one: TaskAwait) -> bytes:
        frame = one.frame
        assert frame is not None
        held = b"".join(
            layout.LOOK_HELD.struct.pack(instance, self._text(at, function))
            for instance, function in one.held
        )
        code = layout.CODE.struct.pack(
            self._text(at, frame.file), self._text(at, frame.qualname), frame.first_line, frame.code_flags
        )
        place = (frame.line, frame.end_line, frame.column, frame.end_column)
        entry = layout.FRAME.struct.pack(self._append(at, code), *place)
        return layout.LOOK_AWAIT.struct.pack(one.first, entry, self._append(at, held), len(one.held))

    def _text(self, at: int, text: str) -> bytes:
        encoded = text.encode()
        return layout.REF.struct.pack(self._append(at, encoded) if encoded else 0, len(encoded))

    def _append(self, at: int, content: bytes) -> int:
        offset = self._used
        self._flight.data[at + offset : at + offset + len(content)] = content
        self._used += -(-len(content) // 8) * 8
        return offset
