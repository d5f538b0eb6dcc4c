"""cpu: Python code was computing."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause
from loopcanary.words.sentences import Sentence, say


def find_compute(observation: Observation) -> Finding | None:
    """By samples on a CPU. Without the kernel's view, by a stack that differs from its neighbours: a sleeping
    thread's stack does not change."""
    running = observation.select(lambda seen: seen.on_cpu is True)
    moving = _moving(observation.select(lambda seen: seen.on_cpu is None and bool(seen.stack)))
    explained = (*running, *moving)
    if not explained or observation.is_glimpse(explained):
        return None
    return Finding(
        cause=Cause.CPU,
        share=observation.share(explained),
        confidence=(0.85 * len(running) + 0.5 * len(moving)) / len(explained),
        evidence=tuple(_sentences(observation, running, moving)),
        explained=explained,
    )


def _moving(samples: tuple[WeighedSample, ...]) -> tuple[WeighedSample, ...]:
    moved: list[WeighedSample] = []
    for index, seen in enumerate(samples):
        neighbours = samples[max(0, index - 1) : index] + samples[index + 1 : index + 2]
        if any(neighbour.stack is not seen.stack for neighbour in neighbours):
            moved.append(seen)
    return tuple(moved)


def _sentences(
    observation: Observation, running: tuple[WeighedSample, ...], moving: tuple[WeighedSample, ...]
) -> Iterator[Sentence]:
    if running:
        read = [seen.view.stack for seen in running if seen.stack]
        unread = len(running) - len(read)
        yield say("on-cpu", some=observation.of_all(running), places=len(set(read)))
        if unread:
            yield say("unread", some=say("stacks", count=unread, whole=len(running)))
    if moving:
        yield say("moving", some=observation.of_all(moving))
    on_cpu_ns = observation.ledger.on_cpu_ns
    if on_cpu_ns is not None and running:
        yield say("ran", ran=on_cpu_ns, whole=observation.duration_ns)
