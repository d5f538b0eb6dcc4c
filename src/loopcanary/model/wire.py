"""Values as JSON-able dicts and back: contract 7.3 of the design (docs/report-schema.md).

Fields are added, never renamed. Durations go out as `_ms` floats, times as RFC 3339 in UTC with nine
decimals; both come back to the same nanosecond (durations: up to 2**51 ns, 26 days, where a float still
has a digit to spare). What comes in is not trusted: anything that is not what the contract says raises
WireError, which names the field.
"""

from __future__ import annotations

from typing import Any

from loopcanary.model.issue import IssueKind
from loopcanary.model.session import LoopHealth, Session, SessionEnd
from loopcanary.model.stall import (
    Blocker,
    Cause,
    Culprit,
    Holder,
    Ledger,
    Severity,
    StackFrame,
    Stall,
    StallScope,
    StallState,
    ThreadView,
    WeightedStack,
)
from loopcanary.model.wire_fields import Fields, WireError, time_from_text, time_to_text

__all__ = [
    "SCHEMA_VERSION",
    "Json",
    "WireError",
    "culprit_to_dict",
    "loop_to_dict",
    "session_from_dict",
    "session_to_dict",
    "stall_from_dict",
    "stall_to_dict",
    "time_from_text",
    "time_to_text",
]

SCHEMA_VERSION = 1

Json = dict[str, Any]


def _ms(ns: int) -> float:
    return ns / 1_000_000


def _optional_ms(ns: int | None) -> float | None:
    return None if ns is None else ns / 1_000_000


def _optional_time(wall_ns: int | None) -> str | None:
    return None if wall_ns is None else time_to_text(wall_ns)


# ---- stalls ----------------------------------------------------------------------------------


def culprit_to_dict(culprit: Culprit) -> Json:
    """The culprit with the place of its call in the source line."""
    return {
        "function": culprit.function,
        "qualname": culprit.qualname,
        "file": culprit.file,
        "line": culprit.line,
        "source": culprit.source,
        "in_app": culprit.in_app,
        "column": culprit.column,
        "end_column": culprit.end_column,
    }


def _culprit(fields: Fields) -> Culprit:
    return Culprit(
        function=fields.text("function"),
        qualname=fields.text("qualname", fields.text("function")),
        file=fields.text("file"),
        line=fields.integer("line"),
        source=fields.optional_text("source"),
        in_app=fields.flag("in_app"),
        column=fields.integer("column", 0),
        end_column=fields.integer("end_column", 0),
    )


def _frame_to_dict(frame: StackFrame) -> Json:
    return {
        "function": frame.function,
        "qualname": frame.qualname,
        "file": frame.file,
        "line": frame.line,
        "in_app": frame.in_app,
    }


def _frame(fields: Fields) -> StackFrame:
    return StackFrame(
        function=fields.text("function"),
        qualname=fields.text("qualname", fields.text("function")),
        file=fields.text("file"),
        line=fields.integer("line"),
        in_app=fields.flag("in_app"),
    )


def _stack_to_dict(stack: WeightedStack) -> Json:
    return {
        "weight_ms": _ms(stack.weight_ns),
        "truncated": stack.truncated,
        "frames": [_frame_to_dict(frame) for frame in stack.frames],
    }


def _stack(fields: Fields) -> WeightedStack:
    return WeightedStack(
        weight_ns=fields.ns("weight_ms"),
        frames=fields.many("frames", _frame),
        truncated=fields.flag("truncated", False),
    )


def _thread_to_dict(thread: ThreadView) -> Json:
    return {
        "tid": thread.tid,
        "name": thread.name,
        "state": thread.state,
        "holds_gil": thread.holds_gil,
        "waits_for_gil": thread.waits_for_gil,
        "frames": [_frame_to_dict(frame) for frame in thread.frames],
    }


def _thread(fields: Fields) -> ThreadView:
    return ThreadView(
        tid=fields.integer("tid"),
        name=fields.text("name"),
        state=fields.text("state"),
        holds_gil=fields.flag("holds_gil"),
        waits_for_gil=fields.flag("waits_for_gil"),
        frames=fields.many("frames", _frame),
    )


def _blocker_to_dict(blocker: Blocker) -> Json:
    return {"call": blocker.call, "function": blocker.function}


def _blocker(fields: Fields) -> Blocker:
    return Blocker(call=fields.optional_text("call"), function=fields.optional_text("function"))


def _holder_to_dict(holder: Holder) -> Json:
    culprit = None if holder.culprit is None else culprit_to_dict(holder.culprit)
    return {"thread": holder.thread, "culprit": culprit}


def _holder(fields: Fields) -> Holder:
    return Holder(thread=fields.text("thread"), culprit=fields.optional("culprit", _culprit))


def _ledger_to_dict(ledger: Ledger) -> Json:
    return {
        "on_cpu_ms": _optional_ms(ledger.on_cpu_ns),
        "gil_wait_ms": _optional_ms(ledger.gil_wait_ns),
        "run_queue_ms": _optional_ms(ledger.run_queue_ns),
        "blocked_ms": _optional_ms(ledger.blocked_ns),
        "gc_ms": _optional_ms(ledger.gc_ns),
    }


def _ledger(fields: Fields) -> Ledger:
    return Ledger(
        on_cpu_ns=fields.optional_ns("on_cpu_ms"),
        gil_wait_ns=fields.optional_ns("gil_wait_ms"),
        run_queue_ns=fields.optional_ns("run_queue_ms"),
        blocked_ns=fields.optional_ns("blocked_ms"),
        gc_ns=fields.optional_ns("gc_ms"),
    )


def _callback(fields: Fields) -> tuple[str | None, str | None]:
    return fields.optional_text("name"), fields.optional_text("task")


def stall_to_dict(stall: Stall) -> Json:
    """The stall as contract 7.3 shows it, with every fact it holds."""
    return {
        "id": stall.id,
        "fingerprint": stall.fingerprint,
        "session": stall.session,
        "pid": stall.pid,
        "thread": stall.thread,
        "loop": stall.loop,
        "kind": IssueKind.STALL.value,
        "title": stall.title,
        "scope": stall.scope.value,
        "state": stall.state.value,
        "severity": stall.severity.value,
        "began_at": time_to_text(stall.began_wall_ns),
        "duration_ms": _ms(stall.duration_ns),
        "threshold_ms": _ms(stall.threshold_ns),
        "queue_ms": _ms(stall.queue_ns),
        "callback": {"name": stall.callback, "task": stall.task},
        "scene": stall.scene,
        "cause": stall.cause.value,
        "confidence": stall.confidence,
        "evidence": list(stall.evidence),
        "advice": stall.advice,
        "culprit": None if stall.culprit is None else culprit_to_dict(stall.culprit),
        "blocker": None if stall.blocker is None else _blocker_to_dict(stall.blocker),
        "holder": None if stall.holder is None else _holder_to_dict(stall.holder),
        "ledger": _ledger_to_dict(stall.ledger),
        "samples": stall.samples,
        "coverage": stall.coverage,
        "dropped_samples": stall.dropped_samples,
        "stacks": [_stack_to_dict(stack) for stack in stall.stacks],
        "threads": [_thread_to_dict(thread) for thread in stall.threads],
        "engine": stall.engine,
    }


def stall_from_dict(value: object) -> Stall:
    """The stall that `stall_to_dict` wrote, or an older schema-1 writer. Raises WireError."""
    fields = Fields(value, "stall")
    callback, task = fields.optional("callback", _callback) or (None, None)
    return Stall(
        id=fields.text("id"),
        session=fields.text("session"),
        pid=fields.integer("pid"),
        fingerprint=fields.text("fingerprint"),
        title=fields.text("title", ""),
        thread=fields.text("thread"),
        loop=fields.text("loop"),
        scope=fields.choice("scope", StallScope, StallScope.CALLBACK.value),
        state=fields.choice("state", StallState),
        severity=fields.choice("severity", Severity),
        began_wall_ns=fields.time("began_at"),
        duration_ns=fields.ns("duration_ms"),
        threshold_ns=fields.ns("threshold_ms"),
        callback=callback,
        task=task,
        scene=fields.optional_text("scene"),
        cause=fields.choice("cause", Cause),
        confidence=fields.number("confidence"),
        evidence=fields.texts("evidence"),
        advice=fields.optional_text("advice"),
        culprit=fields.optional("culprit", _culprit),
        blocker=fields.optional("blocker", _blocker),
        holder=fields.optional("holder", _holder),
        ledger=fields.one("ledger", _ledger),
        samples=fields.integer("samples"),
        coverage=fields.number("coverage"),
        dropped_samples=fields.integer("dropped_samples"),
        stacks=fields.many("stacks", _stack),
        threads=fields.many("threads", _thread),
        queue_ns=fields.ns("queue_ms", 0.0),
        engine=fields.text("engine", "native"),
    )


# ---- sessions --------------------------------------------------------------------------------


def loop_to_dict(loop: LoopHealth) -> Json:
    """Figures of one loop."""
    return {
        "thread": loop.thread,
        "kind": loop.kind,
        "turns": loop.turns,
        "callbacks": loop.callbacks,
        "utilization": loop.utilization,
        "busy_ms": _ms(loop.busy_ns),
        "window_ms": _ms(loop.window_ns),
        "delay_ms": {
            "p50": _ms(loop.delay_p50_ns),
            "p99": _ms(loop.delay_p99_ns),
            "max": _ms(loop.delay_max_ns),
            "mean": _ms(loop.delay_mean_ns),
        },
        "queue_ms": {"mean": _ms(loop.queue_mean_ns), "max": _ms(loop.queue_max_ns)},
        "histogram": [{"up_to_ms": _ms(upper), "turns": turns} for upper, turns in loop.histogram],
    }


def _delay(fields: Fields) -> tuple[int, int, int, int]:
    return fields.ns("p50"), fields.ns("p99"), fields.ns("max"), fields.ns("mean")


def _queue(fields: Fields) -> tuple[int, int]:
    return fields.ns("mean"), fields.ns("max")


def _bucket(fields: Fields) -> tuple[int, int]:
    return fields.ns("up_to_ms"), fields.integer("turns")


def _loop(fields: Fields) -> LoopHealth:
    p50, p99, longest, mean = fields.one("delay_ms", _delay)
    queue_mean, queue_max = fields.optional("queue_ms", _queue) or (0, 0)
    return LoopHealth(
        thread=fields.text("thread"),
        kind=fields.text("kind"),
        turns=fields.integer("turns"),
        callbacks=fields.integer("callbacks", 0),
        busy_ns=fields.ns("busy_ms", 0.0),
        window_ns=fields.ns("window_ms", 0.0),
        utilization=fields.number("utilization"),
        delay_p50_ns=p50,
        delay_p99_ns=p99,
        delay_max_ns=longest,
        delay_mean_ns=mean,
        queue_mean_ns=queue_mean,
        queue_max_ns=queue_max,
        histogram=fields.many("histogram", _bucket),
    )


def session_to_dict(session: Session) -> Json:
    """The session as contract 7.3 shows it, with every fact it holds."""
    return {
        "id": session.id,
        "name": session.name,
        "pid": session.pid,
        "parent_pid": session.parent_pid,
        "host": session.host,
        "python": session.python,
        "engine": session.engine,
        "started_at": time_to_text(session.started_wall_ns),
        "ended_at": _optional_time(session.ended_wall_ns),
        "end": session.end.value,
        "threshold_ms": _ms(session.threshold_ns),
        "version": session.version,
        "qualifier": session.qualifier,
        "user": session.user,
        "network": session.network,
        "command": session.command,
        "machine": session.machine,
        "system": session.system,
        "cores": session.cores,
        "memory_bytes": session.memory_bytes,
        "memory_limit_bytes": session.memory_limit_bytes,
        "cpu_limit": session.cpu_limit,
        "loops": [loop_to_dict(loop) for loop in session.loops],
        "statistics": dict(session.statistics),
    }


def session_from_dict(value: object) -> Session:
    """The session that `session_to_dict` wrote, or an older schema-1 writer. Raises WireError."""
    fields = Fields(value, "session")
    return Session(
        id=fields.text("id"),
        name=fields.text("name"),
        pid=fields.integer("pid"),
        parent_pid=fields.integer("parent_pid", 0),
        host=fields.text("host"),
        python=fields.text("python"),
        engine=fields.text("engine", "native"),
        started_wall_ns=fields.time("started_at"),
        ended_wall_ns=fields.optional_time("ended_at"),
        end=fields.choice("end", SessionEnd),
        threshold_ns=fields.ns("threshold_ms", 0.0),
        version=fields.optional_text("version"),
        qualifier=fields.optional_text("qualifier"),
        user=fields.optional_text("user"),
        network=fields.optional_text("network"),
        command=fields.text("command", ""),
        machine=fields.text("machine", ""),
        system=fields.text("system", ""),
        cores=fields.integer("cores", 0),
        memory_bytes=fields.integer("memory_bytes", 0),
        memory_limit_bytes=fields.integer("memory_limit_bytes") if fields.has("memory_limit_bytes") else None,
        cpu_limit=fields.number("cpu_limit") if fields.has("cpu_limit") else None,
        loops=fields.many("loops", _loop),
        statistics=fields.counts("statistics"),
    )
