"""unknown: what no other rule explains, with the evidence that is missing."""

from __future__ import annotations

from collections import Counter

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause
from loopcanary.words.sentences import Sentence, say

_DROPS = ("moved", "unreadable", "full")
"""Reasons for which the engine drops samples."""


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
            say(
                "unexplained", some=say("samples", count=count, whole=observation.sample_count), reason=reason
            )
            for reason, count in counts.most_common(3)
        ),
        explained=observation.seen,
    )


def _missing(seen: WeighedSample) -> Sentence:
    if seen.sample.kernel is None:
        return say("no-kernel")
    if seen.syscall is not None:
        return say("slept-unknown", call=seen.syscall)
    if seen.on_cpu:
        return say("glimpse")
    if not seen.stack:
        return say("no-stack")
    return say("no-call", state=seen.state) if seen.state else say("no-state")


def no_sample(observation: Observation) -> Sentence:
    """Why there is a stall without a sample, as far as it is known."""
    evidence = observation.evidence
    drops = [
        say(f"drop-{reason}" if reason in _DROPS else "drop-other", count=count, reason=reason)
        for reason, count in evidence.samples_dropped
        if count
    ]
    if drops:
        return say("all-dropped", drops=drops)
    return say("no-look" if evidence.end_ns is None else "no-watchdog", lasted=observation.duration_ns)
