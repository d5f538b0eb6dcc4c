"""The parts of a mixed stall: each with its share, cause and culprit."""

from __future__ import annotations

from dataclasses import dataclass

from loopcanary.diagnosis.blocker import find_blocker
from loopcanary.diagnosis.cause import Verdict
from loopcanary.diagnosis.culprit import find_suspect, to_culprit
from loopcanary.diagnosis.observation import Observation, Seen, weigh_work
from loopcanary.diagnosis.ownership import Owner
from loopcanary.model import Cause, Portion

_LEAST = 0.1
"""A part of less is noise."""
_ALL = 0.9
"""From this share on, one part explains the stall."""
_PARTS_MAX = 6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    cause: Cause
    samples: tuple[Seen, ...]
    share: float
    blameless: bool


def find_portions(observation: Observation, verdict: Verdict) -> tuple[Portion, ...]:
    """Largest first; empty where one culprit and cause explain the stall, and for a burst, which consists
    of many. A cause is split by function where these followed one another; functions that took turns are
    one computation."""
    if verdict.cause is Cause.BURST:
        return ()
    parts = [part for part in _parts(observation, verdict) if part.share >= _LEAST]
    parts.sort(key=lambda part: -part.share)
    if len(parts) < 2 or parts[0].share >= _ALL:
        return ()
    return tuple(_to_portion(observation, part) for part in parts[:_PARTS_MAX])


def _parts(observation: Observation, verdict: Verdict) -> list[_Part]:
    parts: list[_Part] = []
    for finding in verdict.findings:
        if finding.cause is Cause.UNKNOWN:
            continue
        groups = [finding.explained] if finding.blameless else _phases(finding.explained)
        for group in groups:
            whole = len(groups) == 1
            share = finding.share if whole else observation.share(group)
            parts.append(_Part(cause=finding.cause, samples=group, share=share, blameless=finding.blameless))
    return parts


def _phases(samples: tuple[Seen, ...]) -> list[tuple[Seen, ...]]:
    """The samples by the innermost own function, if each of these had mostly one stretch of time."""
    ordered = sorted(samples, key=lambda seen: seen.sample.at_ns)
    groups: dict[tuple[str, str] | None, list[Seen]] = {}
    runs, last = 0, object()
    functions: dict[int, tuple[str, str] | None] = {}
    for seen in ordered:
        key = id(seen.stack)
        if key not in functions:
            functions[key] = _own_function(seen)
        function = functions[key]
        if function != last:
            runs, last = runs + 1, function
        groups.setdefault(function, []).append(seen)
    if runs > 2 * len(groups):
        return [samples]
    return [tuple(group) for group in groups.values()]


def _own_function(seen: Seen) -> tuple[str, str] | None:
    return next((view.function for view in seen.work if view.owner is Owner.OWN), None)


def _to_portion(observation: Observation, part: _Part) -> Portion:
    suspect = None if part.blameless else find_suspect(weigh_work(part.samples))
    return Portion(
        share=round(min(1.0, part.share), 4),
        cause=part.cause,
        culprit=None if suspect is None else to_culprit(suspect, observation.sites),
        blocker=None if suspect is None else find_blocker(suspect, observation.sites),
    )
