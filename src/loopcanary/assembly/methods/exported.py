"""Calls of a running program in the formats of other tools: one stall of each thread, which has nothing but
its traced calls."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.exporters.source import Exported, Program
from loopcanary.model import Cause, Ledger, Severity, Stall, StallScope, StallState
from loopcanary.model.calls import Recording, ThreadCalls
from loopcanary.model.units import format_duration


def exported(recording: Recording) -> Exported:
    """What an exporter is given."""
    session = recording.session
    return Exported(
        stalls=_stalls(recording),
        origin_wall_ns=recording.began_wall_ns,
        each_call={_id(recording, thread): thread.each for thread in recording.threads},
        programs={session.id: Program(name=session.name, host=session.host, python=session.python)},
    )


def _id(recording: Recording, thread: ThreadCalls) -> str:
    return f"{recording.session.id}-calls-{thread.tid}"


def _stalls(recording: Recording) -> Iterator[Stall]:
    for thread in recording.threads:
        yield Stall(
            id=_id(recording, thread),
            fingerprint="",
            session=recording.session.id,
            pid=recording.session.pid,
            thread=thread.thread,
            loop=thread.loop or "thread",
            title=f"calls in {format_duration(recording.duration_ns)}",
            scope=StallScope.TURN,
            state=StallState.ENDED,
            severity=Severity.STALL,
            began_wall_ns=recording.began_wall_ns,
            duration_ns=recording.duration_ns,
            threshold_ns=0,
            callback=None,
            task=None,
            scene=None,
            cause=Cause.UNKNOWN,
            confidence=0.0,
            evidence=(),
            advice=None,
            culprit=None,
            blocker=None,
            holder=None,
            ledger=Ledger(),
            samples=0,
            coverage=0.0,
            dropped_samples=0,
            stacks=(),
            calls=thread.calls,
        )
