"""A stall as a JSON-able dict and back; see model.wire."""

from __future__ import annotations

from loopcanary.model.issue_kind import IssueKind
from loopcanary.model.stall import (
    Blocker,
    Cause,
    Culprit,
    Grade,
    Holder,
    Ledger,
    Portion,
    Severity,
    StackFrame,
    Stall,
    StallScope,
    StallState,
    Surroundings,
    ThreadView,
    WeightedStack,
)
from loopcanary.model.waiting import Contributor, LockProof, Target, TargetKind
from loopcanary.model.wire_fields import Fields, Json, ms, optional_ms, time_to_text


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


def _optional_culprit(culprit: Culprit | None) -> Json | None:
    return None if culprit is None else culprit_to_dict(culprit)


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
        "weight_ms": ms(stack.weight_ns),
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
    return {
        "thread": holder.thread,
        "culprit": _optional_culprit(holder.culprit),
        "share": holder.share,
        "lock": holder.lock,
        "proof": None if holder.proof is None else holder.proof.value,
    }


def _holder(fields: Fields) -> Holder:
    return Holder(
        thread=fields.text("thread"),
        culprit=fields.optional("culprit", _culprit),
        share=fields.number("share", 1.0),
        lock=fields.optional_text("lock"),
        proof=fields.optional_choice("proof", LockProof),
    )


def _ledger_to_dict(ledger: Ledger) -> Json:
    return {
        "on_cpu_ms": optional_ms(ledger.on_cpu_ns),
        "gil_wait_ms": optional_ms(ledger.gil_wait_ns),
        "run_queue_ms": optional_ms(ledger.run_queue_ns),
        "blocked_ms": optional_ms(ledger.blocked_ns),
        "gc_ms": optional_ms(ledger.gc_ns),
        "error_ms": optional_ms(ledger.error_ns),
    }


def _ledger(fields: Fields) -> Ledger:
    return Ledger(
        on_cpu_ns=fields.optional_ns("on_cpu_ms"),
        gil_wait_ns=fields.optional_ns("gil_wait_ms"),
        run_queue_ns=fields.optional_ns("run_queue_ms"),
        blocked_ns=fields.optional_ns("blocked_ms"),
        gc_ns=fields.optional_ns("gc_ms"),
        error_ns=fields.optional_ns("error_ms"),
    )


def _portion_to_dict(portion: Portion) -> Json:
    return {
        "share": portion.share,
        "cause": portion.cause.value,
        "culprit": _optional_culprit(portion.culprit),
        "blocker": None if portion.blocker is None else _blocker_to_dict(portion.blocker),
    }


def _portion(fields: Fields) -> Portion:
    return Portion(
        share=fields.number("share"),
        cause=fields.choice("cause", Cause),
        culprit=fields.optional("culprit", _culprit),
        blocker=fields.optional("blocker", _blocker),
    )


def _target_to_dict(target: Target) -> Json:
    return {"kind": target.kind.value, "name": target.name, "pid": target.pid}


def _target(fields: Fields) -> Target:
    return Target(
        kind=fields.choice("kind", TargetKind),
        name=fields.text("name", ""),
        pid=fields.optional_integer("pid"),
    )


def _contributor_to_dict(contributor: Contributor) -> Json:
    return {
        "name": contributor.name,
        "count": contributor.count,
        "total_ms": ms(contributor.total_ns),
        "longest_ms": ms(contributor.longest_ns),
    }


def _contributor(fields: Fields) -> Contributor:
    return Contributor(
        name=fields.text("name"),
        count=fields.integer("count"),
        total_ns=fields.ns("total_ms"),
        longest_ns=fields.ns("longest_ms"),
    )


def _surroundings_to_dict(around: Surroundings) -> Json:
    return {
        "window_ms": ms(around.window_ns),
        "system_cpu": around.system_cpu,
        "process_cpu": around.process_cpu,
        "throttled_ms": optional_ms(around.throttled_ns),
        "pressure_cpu": around.pressure_cpu,
        "pressure_memory": around.pressure_memory,
        "pressure_io": around.pressure_io,
        "major_faults": around.major_faults,
        "voluntary_switches": around.voluntary_switches,
        "involuntary_switches": around.involuntary_switches,
        "memory_available_bytes": around.memory_available_bytes,
        "memory_used_bytes": around.memory_used_bytes,
    }


def _surroundings(fields: Fields) -> Surroundings:
    return Surroundings(
        window_ns=fields.ns("window_ms"),
        system_cpu=fields.optional_number("system_cpu"),
        process_cpu=fields.optional_number("process_cpu"),
        throttled_ns=fields.optional_ns("throttled_ms"),
        pressure_cpu=fields.optional_number("pressure_cpu"),
        pressure_memory=fields.optional_number("pressure_memory"),
        pressure_io=fields.optional_number("pressure_io"),
        major_faults=fields.optional_integer("major_faults"),
        voluntary_switches=fields.optional_integer("voluntary_switches"),
        involuntary_switches=fields.optional_integer("involuntary_switches"),
        memory_available_bytes=fields.optional_integer("memory_available_bytes"),
        memory_used_bytes=fields.optional_integer("memory_used_bytes"),
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
        "duration_ms": ms(stall.duration_ns),
        "threshold_ms": ms(stall.threshold_ns),
        "queue_ms": ms(stall.queue_ns),
        "callback": {"name": stall.callback, "task": stall.task},
        "scene": stall.scene,
        "cause": stall.cause.value,
        "confidence": stall.confidence,
        "evidence": list(stall.evidence),
        "advice": stall.advice,
        "culprit": _optional_culprit(stall.culprit),
        "blocker": None if stall.blocker is None else _blocker_to_dict(stall.blocker),
        "holder": None if stall.holder is None else _holder_to_dict(stall.holder),
        "ledger": _ledger_to_dict(stall.ledger),
        "samples": stall.samples,
        "coverage": stall.coverage,
        "dropped_samples": stall.dropped_samples,
        "stacks": [_stack_to_dict(stack) for stack in stall.stacks],
        "threads": [_thread_to_dict(thread) for thread in stall.threads],
        "engine": stall.engine,
        "cause_share": stall.cause_share,
        "second_cause": None if stall.second_cause is None else stall.second_cause.value,
        "second_share": stall.second_share,
        "portions": [_portion_to_dict(portion) for portion in stall.portions],
        "grade": stall.grade.value,
        "holders": [_holder_to_dict(holder) for holder in stall.holders],
        "waited_on": None if stall.waited_on is None else _target_to_dict(stall.waited_on),
        "contributors": [_contributor_to_dict(entry) for entry in stall.contributors],
        "surroundings": None if stall.surroundings is None else _surroundings_to_dict(stall.surroundings),
        "startup": stall.startup,
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
        cause_share=fields.number("cause_share", 1.0),
        second_cause=fields.optional_choice("second_cause", Cause),
        second_share=fields.number("second_share", 0.0),
        portions=fields.many("portions", _portion),
        grade=fields.choice("grade", Grade, Grade.FAIR.value),
        holders=fields.many("holders", _holder),
        waited_on=fields.optional("waited_on", _target),
        contributors=fields.many("contributors", _contributor),
        surroundings=fields.optional("surroundings", _surroundings),
        startup=fields.flag("startup", False),
    )
