"""burst: many short callbacks in one turn, none of them to blame alone."""

from __future__ import annotations

from loopcanary.diagnosis.cause import Finding
from loopcanary.diagnosis.observation import Observation
from loopcanary.diagnosis.ownership import Owner
from loopcanary.model import Cause, Contributor, StallScope
from loopcanary.model.units import format_duration
from loopcanary.words.waiting import scheduler_words

_CALLBACK_SHARE = 0.5
_CONTRIBUTORS = 3
_FEWEST = 2


def find_burst(observation: Observation) -> Finding | None:
    """By the record of the turn: callbacks took at least half of it and none took half alone. It is the
    cause whatever they did; what that was follows as the second cause. Where a collection or the
    host explains half of the turn, its length is no matter of the callbacks."""
    evidence, duration = observation.evidence, observation.duration_ns
    if evidence.scope is not StallScope.TURN or evidence.turn_callbacks < _FEWEST or not duration:
        return None
    share = min(1.0, evidence.turn_callback_ns / duration)
    if share < _CALLBACK_SHARE or 2 * evidence.longest_callback_ns >= duration:
        return None
    if 2 * (observation.ledger.gc_ns or 0) >= duration or not _is_a_stall_without_the_host(observation):
        return None
    return Finding(
        cause=Cause.BURST,
        share=share,
        confidence=0.9,
        evidence=(
            (
                f"{evidence.turn_callbacks:,} callbacks in one turn took "
                f"{format_duration(evidence.turn_callback_ns)} of {format_duration(duration)} together; "
                f"the longest took {format_duration(evidence.longest_callback_ns)}."
            ),
            *(_contributors(observation) if evidence.contributors else _sampled(observation)),
        ),
        decides=True,
    )


def _is_a_stall_without_the_host(observation: Observation) -> bool:
    """Whether what the rules before left would be long enough, or is half of the turn at least."""
    left = observation.share(observation.seen) if observation.sample_count else 1.0
    return left >= _CALLBACK_SHARE or left * observation.duration_ns > observation.evidence.threshold_ns


def _contributors(observation: Observation) -> tuple[str, ...]:
    """The callbacks that took most, counted by the thread itself."""
    evidence = observation.evidence
    sentences = [_told(entry) for entry in evidence.contributors[:_CONTRIBUTORS]]
    since = evidence.contributors_from_ns
    if since is not None and since > evidence.begin_ns:
        sentences.append(f"Counted from {format_duration(since - evidence.begin_ns)} after its begin.")
    if evidence.contributors_dropped:
        sentences.append(f"{evidence.contributors_dropped:,} callbacks are not in these sums: no room.")
    return tuple(sentences)


def _told(entry: Contributor) -> str:
    mean = format_duration(entry.total_ns // max(1, entry.count))
    scheduled = scheduler_words(entry)
    return (
        f"{entry.name}: {entry.count:,} times, {format_duration(entry.total_ns)} together, {mean} on average"
        f"{f'; {scheduled}' if scheduled else ''}."
    )


def _sampled(observation: Observation) -> tuple[str, ...]:
    """The functions of the program that the loop called, by their share of the samples."""
    held: dict[str, int] = {}
    for seen in observation.seen:
        outermost = next((view for view in reversed(seen.work) if view.owner is Owner.OWN), None)
        if outermost is not None:
            held[outermost.shown.qualname] = held.get(outermost.shown.qualname, 0) + seen.weight_ns
    ranked = sorted(held.items(), key=lambda entry: -entry[1])[:_CONTRIBUTORS]
    if not ranked or not observation.total_ns:
        return ()
    parts = [f"{name} {round(100 * weight / observation.total_ns)} %" for name, weight in ranked]
    return (f"Share of the samples: {', '.join(parts)}.",)
