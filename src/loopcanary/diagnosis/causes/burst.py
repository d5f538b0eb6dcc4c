"""burst: many short callbacks in one turn, none of them to blame alone."""

from __future__ import annotations

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.code.ownership import Owner
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.model import Cause, Contributor, StallScope
from loopcanary.words.sentences import Sentence, say
from loopcanary.words.waiting import scheduler_words

_CALLBACK_SHARE = 0.5
_CONTRIBUTORS = 3
_FEWEST = 2


def find_burst(observation: Observation) -> Finding | None:
    """By the record of the turn: callbacks took at least half of the time, and none took half alone. It is
    the cause whatever they did; what they did is the second cause. It is not found if a collection or the
    host explains half of the turn: then the callbacks did not make it long."""
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
            say(
                "callbacks",
                count=evidence.turn_callbacks,
                took=evidence.turn_callback_ns,
                whole=duration,
                longest=evidence.longest_callback_ns,
            ),
            *(_contributors(observation) if evidence.contributors else _sampled(observation)),
        ),
        decides=True,
    )


def _is_a_stall_without_the_host(observation: Observation) -> bool:
    """Whether what the rules before left would be long enough, or is half of the turn at least."""
    left = observation.share(observation.seen) if observation.sample_count else 1.0
    return left >= _CALLBACK_SHARE or left * observation.duration_ns > observation.evidence.threshold_ns


def _contributors(observation: Observation) -> tuple[Sentence, ...]:
    """The callbacks that took most, counted by the thread itself."""
    evidence = observation.evidence
    sentences = [_contributor(entry) for entry in evidence.contributors[:_CONTRIBUTORS]]
    since = evidence.contributors_from_ns
    if since is not None and since > evidence.begin_ns:
        sentences.append(say("counted-from", since=since - evidence.begin_ns))
    if evidence.contributors_dropped:
        sentences.append(say("not-counted", count=evidence.contributors_dropped))
    return tuple(sentences)


def _contributor(entry: Contributor) -> Sentence:
    mean, scheduled = entry.total_ns // max(1, entry.count), scheduler_words(entry)
    return say(
        "contributor",
        name=entry.name,
        count=entry.count,
        total=entry.total_ns,
        mean=mean,
        scheduled=scheduled,
    )


def _sampled(observation: Observation) -> tuple[Sentence, ...]:
    """The functions of the program that the loop called, by their share of the samples."""
    held: dict[str, int] = {}
    for seen in observation.seen:
        outermost = next((view for view in reversed(seen.work) if view.owner is Owner.OWN), None)
        if outermost is not None:
            held[outermost.shown.qualname] = held.get(outermost.shown.qualname, 0) + seen.weight_ns
    ranked = sorted(held.items(), key=lambda entry: -entry[1])[:_CONTRIBUTORS]
    if not ranked or not observation.total_ns:
        return ()
    parts = [say("part", name=name, share=weight / observation.total_ns) for name, weight in ranked]
    return (say("sampled", parts=parts),)
