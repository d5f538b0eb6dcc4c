"""Stalls as they come out of a flight file, before they are judged. A test names what matters to it."""

from __future__ import annotations

from typing import Any

from loopcanary.model import (
    CallbackNames,
    Contributor,
    Frame,
    GilState,
    HostReading,
    KernelView,
    Sample,
    Scheduler,
    Stack,
    StallEvidence,
    StallScope,
    ThreadReading,
    ThreadStack,
)

MS = 1_000_000
BEGIN = 5_000 * MS

LEAF = Frame(
    qualname="loads", file="/usr/lib/python3.12/json/__init__.py", line=346, end_line=346, first_line=299
)
HANDLER = Frame(
    qualname="Shop.handle.<locals>.parse",
    file="/srv/shop/größe.py",
    line=20,
    end_line=21,
    column=9,
    end_column=31,
    first_line=18,
    code_flags=0x83,
)
STACK = Stack(frames=(LEAF, HANDLER))
HOLDER = Stack(frames=(HANDLER,), truncated=True)

KERNEL = KernelView(
    on_cpu_ns=900 * MS,
    run_queue_ns=3 * MS,
    voluntary_switches=12,
    involuntary_switches=4,
    major_faults=1,
    thread_state="S",
    syscall=202,
    syscall_args=(0x7F0000001000, 128, (1 << 64) - 1),
)


def sample(at_ms: int, **fields: Any) -> Sample:
    return Sample(**{"at_ns": BEGIN + at_ms * MS, "stack": STACK, "kernel": KERNEL, **fields})


def bare(**fields: Any) -> StallEvidence:
    """A callback of 300 ms of which nothing is known but its times, and these fields."""
    whole = {
        "serial": 3,
        "scope": StallScope.CALLBACK,
        "tid": 41,
        "loop_kind": "asyncio",
        "thread_name": "MainThread",
        "begin_ns": 0,
        "end_ns": 300 * MS,
        "last_look_ns": 300 * MS,
        "threshold_ns": 100 * MS,
    }
    return StallEvidence(**{**whole, **fields})


def stall(**fields: Any) -> StallEvidence:
    """A callback that took 250 ms, fully evidenced."""
    whole = {
        "begin_ns": BEGIN,
        "end_ns": BEGIN + 250 * MS,
        "last_look_ns": BEGIN + 250 * MS,
        "names": CallbackNames(name="Shop.handle", task="Task-17"),
        "scene": "checkout",
        "samples": (
            sample(20, gil=GilState.SELF, in_gc=True),
            sample(30, gil=GilState.OTHER, waits_for_gil=True, holder_tid=43, holder_stack=HOLDER),
            sample(40, stack=None, kernel=None),
        ),
        "sample_interval_ns": 10 * MS,
        "samples_dropped": (("moved", 2), ("full", 1)),
        "threads": (
            ThreadStack(tid=43, at_ns=BEGIN + 99, stack=HOLDER, thread_state="R", holds_gil=True),
            ThreadStack(tid=44, at_ns=BEGIN + 99, thread_state="S", waits_for_gil=True),
        ),
        "thread_names": ((45, "resizer"), (46, "größe")),
        "turn_begin_ns": BEGIN - MS,
        "turn_callbacks": 2,
        "turn_callback_ns": 251 * MS,
        "longest_callback_ns": 250 * MS,
        "end_cpu_ns": 77 * MS,
        "queue_ns": 5 * MS,
        "before": reading(BEGIN - 3 * MS),
        "host": (
            HostReading(at_ns=BEGIN + 20 * MS, process_cpu_ns=5, throttled_ns=7, throttled_periods=1),
            HostReading(at_ns=BEGIN + 251 * MS, memory_used_bytes=0),
        ),
    }
    return bare(**{**whole, **fields})


def reading(at_ns: int) -> ThreadReading:
    return ThreadReading(at_ns=at_ns, kernel=KernelView(on_cpu_ns=890 * MS, run_queue_ns=2 * MS))


def going_on(**fields: Any) -> StallEvidence:
    """The same callback, last seen after 150 ms."""
    end = {"end_ns": None, "end_cpu_ns": None, "last_look_ns": BEGIN + 150 * MS}
    return stall(**{**end, **fields})


def turn(**fields: Any) -> StallEvidence:
    """A turn of many short callbacks that took 250 ms."""
    whole = {
        "scope": StallScope.TURN,
        "names": None,
        "scene": None,
        "turn_begin_ns": BEGIN,
        "contributors": (
            Contributor(
                name="parse",
                count=900,
                total_ns=180 * MS,
                longest_ns=MS,
                scheduled=(Scheduler(file="/srv/app/feed.py", line=12, count=900),),
            ),
            Contributor(name="größe", count=90, total_ns=18 * MS, longest_ns=2 * MS),
        ),
        "contributors_from_ns": BEGIN + 21 * MS,
        "contributors_dropped": 3,
    }
    return stall(**{**whole, **fields})
