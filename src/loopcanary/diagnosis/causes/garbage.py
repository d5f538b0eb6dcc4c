"""gc: the thread was collecting garbage."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.ledger import overlap_ns
from loopcanary.diagnosis.samples.marks import last_name
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause, Collection
from loopcanary.model.units import format_duration
from loopcanary.words.sentences import Sentence, say

_WORTH_SAYING = 0.1
"""Collections are frequent and mostly short: below this share they explain nothing."""


def find_garbage(observation: Observation) -> Finding | None:
    """By the stamps of the collections on this thread, and by samples taken inside one. The stamps are wall
    times: a collection counts for no more than the thread ran. Asked after `host`.

    A collection that the program asked for by `gc.collect()` is that line's; others strike whatever
    happens to allocate. Where the rest alone makes a stall, they yield to what explains the rest: one
    `json.loads` is one bug, however often it made the collector run.
    """
    evidence = observation.evidence
    begin_ns, end_ns = evidence.begin_ns, evidence.begin_ns + observation.duration_ns
    mine = [
        entry
        for entry in evidence.collections
        if entry.tid == evidence.tid and entry.end_ns > begin_ns and entry.begin_ns < end_ns
    ]
    recorded_ns = overlap_ns(mine, evidence.tid, begin_ns, end_ns)
    whole_ns = max(recorded_ns, observation.ledger.gc_ns or 0)
    inside = (
        observation.select_each(lambda seen: seen.sample.in_gc or _during(seen, mine))
        if mine
        else observation.select(lambda seen: seen.sample.in_gc)
    )
    share = _share(observation, whole_ns, inside, stamped=bool(mine))
    if share < _WORTH_SAYING:
        return None
    asked = _was_asked_for(observation, inside)
    return Finding(
        cause=Cause.GC,
        share=share,
        confidence=0.97 if mine else 0.85 if len(inside) > 1 else 0.6,
        evidence=tuple(_sentences(observation, mine, recorded_ns, whole_ns, inside, asked=asked)),
        explained=inside,
        topic="gc-asked" if asked else None,
        title=None if asked else "gc-automatic",
        blameless=not asked,
        yields=not asked and observation.duration_ns * (1.0 - share) > observation.evidence.threshold_ns,
    )


def _share(
    observation: Observation, recorded_ns: int, inside: tuple[WeighedSample, ...], *, stamped: bool
) -> float:
    if not stamped:
        return observation.share(inside)
    on_cpu_ns, error_ns = observation.ledger.on_cpu_ns, observation.ledger.error_ns or 0
    if on_cpu_ns is not None:
        recorded_ns = min(recorded_ns, on_cpu_ns + error_ns)
    return min(1.0, recorded_ns / observation.duration_ns) if observation.duration_ns else 0.0


def _during(seen: WeighedSample, mine: list[Collection]) -> bool:
    return any(entry.begin_ns <= seen.sample.at_ns < entry.end_ns for entry in mine)


def _was_asked_for(observation: Observation, inside: tuple[WeighedSample, ...]) -> bool:
    """Whether most samples inside a collection are at `gc.collect()`. A finalizer has a frame of its own,
    which says nothing about who asked."""
    asked = observation.share([seen for seen in inside if _collects(observation, seen)])
    return asked > 0 and 2 * asked > observation.share(inside)


def _collects(observation: Observation, seen: WeighedSample) -> bool:
    callee = observation.callee(seen)
    return last_name(callee) == "collect" and callee in ("gc.collect", "collect")


def _sentences(
    observation: Observation,
    mine: list[Collection],
    recorded_ns: int,
    whole_ns: int,
    inside: tuple[WeighedSample, ...],
    *,
    asked: bool,
) -> Iterator[Sentence]:
    if mine:
        yield say(
            "collections",
            count=len(mine),
            recorded=recorded_ns,
            whole=observation.duration_ns,
            generation=max(entry.generation for entry in mine),
            objects=sum(entry.collected for entry in mine),
        )
        if format_duration(whole_ns) != format_duration(recorded_ns):
            yield say("collected-in-all", whole=whole_ns)
    if inside:
        yield say("in-collection", some=observation.of_all(inside))
    if asked:
        yield say("gc-asked")
    elif inside:
        yield say("gc-automatic")
