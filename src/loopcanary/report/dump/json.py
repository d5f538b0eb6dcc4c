"""A process seen from outside, as JSON; docs/dump.md has the fields. Fields are added, never renamed."""

from __future__ import annotations

import json
from collections.abc import Mapping

from loopcanary.model import Frame
from loopcanary.model.outside import ProcessSight, ThreadSight, WaitedLock
from loopcanary.report.dump.words import deadlocks, doing_words
from loopcanary.wire import Json, time_to_text, to_wire

SCHEMA = 1


def render(process: ProcessSight) -> str:
    return json.dumps(dump_to_dict(process), indent=2) + "\n"


def dump_to_dict(process: ProcessSight) -> Json:
    threads = {thread.tid: thread for thread in process.threads}
    return {
        "schema": SCHEMA,
        "taken_at": time_to_text(process.taken_wall_ns),
        "pid": process.pid,
        "command": process.command,
        "executable": process.executable,
        "python": process.python,
        "age_ms": None if process.age_ns is None else process.age_ns / 1_000_000,
        "session": process.session,
        "deadlocks": [list(circle) for circle in deadlocks(process.threads)],
        "threads": [_thread(thread, threads) for thread in process.threads],
        "notes": list(process.notes),
    }


def _thread(thread: ThreadSight, threads: Mapping[int, ThreadSight]) -> Json:
    return {
        "tid": thread.tid,
        "name": thread.name or None,
        "is_main": thread.is_main,
        "interpreter": thread.interpreter,
        "doing": doing_words(thread, threads),
        "state": thread.state,
        "syscall": thread.syscall,
        "target": None if thread.target is None else to_wire(thread.target),
        "holds_gil": thread.holds_gil,
        "waits_for_gil": thread.waits_for_gil,
        "lock": None if thread.lock is None else _lock(thread.lock),
        "loop": None if thread.lane is None else to_wire(thread.lane),
        "stack": thread.reading.value,
        "inner_cut": thread.stack is not None and thread.stack.inner_cut,
        "truncated": thread.stack is not None and thread.stack.truncated,
        "frames": [] if thread.stack is None else [_frame(frame) for frame in thread.stack.frames],
    }


def _lock(lock: WaitedLock) -> Json:
    return {
        "kind": lock.view.kind,
        "holder_tid": lock.holder_tid,
        "proof": lock.view.proof.value,
        "module": lock.module,
        "has_timeout": lock.has_timeout,
    }


def _frame(frame: Frame) -> Json:
    return {
        "function": frame.function,
        "qualname": frame.qualname,
        "file": frame.file,
        "line": frame.line,
        "end_line": frame.end_line,
        "column": frame.column,
        "end_column": frame.end_column,
    }
