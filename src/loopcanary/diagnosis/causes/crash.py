"""crash: a fault of the thread itself ended the process."""

from __future__ import annotations

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.model import Cause
from loopcanary.words.sentences import say

STACK_OVER = "stack-over"


def find_crash(observation: Observation) -> Finding | None:
    """By the signal that the thread's own code caused. It is the cause, however long the stall was before."""
    fault = observation.evidence.fault
    if fault is None:
        return None
    return Finding(
        cause=Cause.CRASH,
        share=1.0,
        confidence=1.0,
        evidence=(say("faulted-stack-over" if fault.is_stack_over else "faulted", signal=fault.signal),),
        explained=observation.seen,
        topic=STACK_OVER if fault.is_stack_over else None,
        decides=True,
    )
