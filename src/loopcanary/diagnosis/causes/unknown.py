"""unknown: what no other rule explains, with the evidence that is missing."""

from __future__ import annotations

from collections import Counter

from loopcanary.diagnosis.cause import Finding
from loopcanary.diagnosis.observation import Observation, Seen
from loopcanary.model import Cause
from loopcanary.model.units import format_duration

_DROPS = {
    "moved": "taken while the work changed",
    "unreadable": "unreadable",
    "full": "beyond the room for samples",
}


def find_unknown(observation: Observation) -> Finding | None:
    """Explains the rest; asked last."""
    if not observation.sample_count:
        return Finding(cause=Cause.UNKNOWN, share=0.0, confidence=0.0, evidence=(no_sample(observation),))
    if not observation.seen:
        return None
    counts = Counter(_missing(seen) for seen in observation.seen)
    return Finding(
        cause=Cause.UNKNOWN,
        share=observation.share(observation.seen),
        confidence=0.0,
        evidence=tuple(
            f"{count} of {observation.sample_count} samples: {reason}."
            for reason, count in counts.most_common(3)
        ),
        explained=observation.seen,
    )


def _missing(seen: Seen) -> str:
    if seen.sample.kernel is None:
        return "the kernel's view of the thread is missing, so waiting and computing look alike"
    if seen.syscall is not None:
        return f"the thread slept in {seen.syscall}, which tells no cause"
    if not seen.stack:
        return "the stack could not be read"
    if seen.state == "":
        return "the kernel gave no state of the thread"
    return f"the thread was in state {seen.state}, but the kernel named no system call"


def no_sample(observation: Observation) -> str:
    """Why there is a stall without a sample, as far as it is known."""
    evidence = observation.evidence
    dropped = [f"{count} {_DROPS.get(reason, reason)}" for reason, count in evidence.samples_dropped if count]
    if dropped:
        return f"no sample was taken: those tried were dropped ({', '.join(dropped)})."
    lasted = format_duration(observation.duration_ns)
    if evidence.end_ns is None:
        return f"no sample was taken: the stall had been seen for {lasted} and no look at it succeeded."
    return f"no sample was taken: the watchdog did not get to run in the {lasted} that it lasted."
