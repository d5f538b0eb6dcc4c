"""gc: the thread was collecting garbage."""

from __future__ import annotations

from loopcanary.diagnosis.cause import Finding
from loopcanary.diagnosis.ledger import overlap_ns
from loopcanary.diagnosis.observation import Observation, Seen
from loopcanary.model import Cause, Collection
from loopcanary.model.units import format_duration

_WORTH_SAYING = 0.1
"""Collections are frequent and mostly short: below this share they explain nothing."""


def find_garbage(observation: Observation) -> Finding | None:
    """By the stamps of the collections on this thread, and by samples taken inside one."""
    evidence = observation.evidence
    begin_ns, end_ns = evidence.begin_ns, evidence.begin_ns + observation.duration_ns
    mine = [
        entry
        for entry in evidence.collections
        if entry.tid == evidence.tid and entry.end_ns > begin_ns and entry.begin_ns < end_ns
    ]
    recorded_ns = overlap_ns(mine, evidence.tid, begin_ns, end_ns)
    inside = observation.select_each(lambda seen: seen.sample.in_gc or _during(seen, mine))
    stamped = recorded_ns / observation.duration_ns if observation.duration_ns else 0.0
    share = min(1.0, stamped if mine else observation.share(inside))
    if share < _WORTH_SAYING:
        return None
    return Finding(
        cause=Cause.GC,
        share=share,
        confidence=0.97 if mine else 0.85,
        evidence=tuple(_sentences(observation, mine, recorded_ns, inside)),
        explained=inside,
    )


def _during(seen: Seen, mine: list[Collection]) -> bool:
    return any(entry.begin_ns <= seen.sample.at_ns < entry.end_ns for entry in mine)


def _sentences(
    observation: Observation, mine: list[Collection], recorded_ns: int, inside: tuple[Seen, ...]
) -> list[str]:
    sentences: list[str] = []
    if mine:
        count = "One garbage collection" if len(mine) == 1 else f"{len(mine)} garbage collections"
        took = f"{format_duration(recorded_ns)} of {format_duration(observation.duration_ns)}"
        oldest = max(entry.generation for entry in mine)
        objects = sum(entry.collected for entry in mine)
        sentences.append(
            f"{count} on this thread took {took} (oldest generation {oldest}, {objects:,} objects freed)."
        )
    if inside:
        sentences.append(f"{observation.of_all(inside)} lay inside a garbage collection.")
    return sentences
