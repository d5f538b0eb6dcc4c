"""A stall as a JSON-able dict and back; see model.wire."""

from __future__ import annotations

from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.stall import (
    Blocker,
    Cause,
    Grade,
    Holder,
    Ledger,
    Portion,
    Severity,
    Stall,
    StallScope,
    StallState,
    Surroundings,
    ThreadView,
)
from loopcanary.model.waiting import Contributor, LockProof, Scheduler
from loopcanary.model.wire_fields import Fields, Json, ms, optional_ms, time_to_text
from loopcanary.model.wire_pieces import (
    culprit_of,
    frame_of,
    frame_to_dict,
    optional_culprit,
    stack_of,
    stack_to_dict,
    target_of,
    target_to_dict,
)
from loopcanary.model.wire_timeline import timeline_of, timeline_to_dict


def _thread_to_dict(thread: ThreadView) -> Json:
    return {
        "tid": thread.tid,
        "name": thread.name,
        "state": thread.state,
        "holds_gil": thread.holds_gil,
        "waits_for_gil": thread.waits_for_gil,
        "frames": [frame_to_dict(frame) for frame in thread.frames],
    }


def _thread(fields: Fields) -> ThreadView:
    return ThreadView(
        tid=fields.integer("tid"),
        name=fields.text("name"),
        state=fields.text("state"),
        holds_gil=fields.flag("holds_gil"),
        waits_for_gil=fields.flag("waits_for_gil"),
        frames=fields.many("frames", frame_of),
    )


def _blocker_to_dict(blocker: Blocker) -> Json:
    return {"call": blocker.call, "function": blocker.function}


def _blocker(fields: Fields) -> Blocker:
    return Blocker(call=fields.optional_text("call"), function=fields.optional_text("function"))


def _holder_to_dict(holder: Holder) -> Json:
    return {
        "thread": holder.thread,
        "culprit": optional_culprit(holder.culprit),
        "share": holder.share,
        "lock": holder.lock,
        "proof": None if holder.proof is None else holder.proof.value,
    }


def _holder(fields: Fields) -> Holder:
    return Holder(
        thread=fields.text("thread"),
        culprit=fields.optional("culprit", culprit_of),
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
        "culprit": optional_culprit(portion.culprit),
        "blocker": None if portion.blocker is None else _blocker_to_dict(portion.blocker),
    }


def _portion(fields: Fields) -> Portion:
    return Portion(
        share=fields.number("share"),
        cause=fields.choice("cause", Cause),
        culprit=fields.optional("culprit", culprit_of),
        blocker=fields.optional("blocker", _blocker),
    )


def _contributor_to_dict(contributor: Contributor) -> Json:
    return {
        "name": contributor.name,
        "count": contributor.count,
        "total_ms": ms(contributor.total_ns),
        "longest_ms": ms(contributor.longest_ns),
        "scheduled": [
            {"file": one.file, "line": one.line, "count": one.count} for one in contributor.scheduled
        ],
    }


def _contributor(fields: Fields) -> Contributor:
    return Contributor(
        name=fields.text("name"),
        count=fields.integer("count"),
        total_ns=fields.ns("total_ms"),
        longest_ns=fields.ns("longest_ms"),
        scheduled=fields.many("scheduled", _scheduler),
    )


def _scheduler(fields: Fields) -> Scheduler:
    return Scheduler(file=fields.text("file"), line=fields.integer("line"), count=fields.integer("count"))


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
        "culprit": optional_culprit(stall.culprit),
        "blocker": None if stall.blocker is None else _blocker_to_dict(stall.blocker),
        "holder": None if stall.holder is None else _holder_to_dict(stall.holder),
        "ledger": _ledger_to_dict(stall.ledger),
        "samples": stall.samples,
        "coverage": stall.coverage,
        "dropped_samples": stall.dropped_samples,
        "stacks": [stack_to_dict(stack) for stack in stall.stacks],
        "threads": [_thread_to_dict(thread) for thread in stall.threads],
        "engine": stall.engine,
        "cause_share": stall.cause_share,
        "second_cause": None if stall.second_cause is None else stall.second_cause.value,
        "second_share": stall.second_share,
        "portions": [_portion_to_dict(portion) for portion in stall.portions],
        "grade": stall.grade.value,
        "holders": [_holder_to_dict(holder) for holder in stall.holders],
        "waited_on": None if stall.waited_on is None else target_to_dict(stall.waited_on),
        "contributors": [_contributor_to_dict(entry) for entry in stall.contributors],
        "surroundings": None if stall.surroundings is None else _surroundings_to_dict(stall.surroundings),
        "startup": stall.startup,
        "timeline": None if stall.timeline is None else timeline_to_dict(stall.timeline),
    }


def stall_from_dict(value: object) -> Stall:
    """The stall that `stall_to_dict` wrote, or an older schema-1 writer. Raises WireError."""
    fields = Fields(value, "stall")
    callback, task = fields.optional("callback", _callback) or (None, None)
    stacks = fields.many("stacks", stack_of)
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
        culprit=fields.optional("culprit", culprit_of),
        blocker=fields.optional("blocker", _blocker),
        holder=fields.optional("holder", _holder),
        ledger=fields.one("ledger", _ledger),
        samples=fields.integer("samples"),
        coverage=fields.number("coverage"),
        dropped_samples=fields.integer("dropped_samples"),
        stacks=stacks,
        threads=fields.many("threads", _thread),
        queue_ns=fields.ns("queue_ms", 0.0),
        engine=fields.text("engine", "native"),
        cause_share=fields.number("cause_share", 1.0),
        second_cause=fields.optional_choice("second_cause", Cause),
        second_share=fields.number("second_share", 0.0),
        portions=fields.many("portions", _portion),
        grade=fields.choice("grade", Grade, Grade.FAIR.value),
        holders=fields.many("holders", _holder),
        waited_on=fields.optional("waited_on", target_of),
        contributors=fields.many("contributors", _contributor),
        surroundings=fields.optional("surroundings", _surroundings),
        startup=fields.flag("startup", False),
        timeline=fields.optional("timeline", lambda timeline: timeline_of(timeline, len(stacks))),
    )
