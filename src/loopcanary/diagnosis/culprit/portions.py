"""The parts of a mixed stall: each with its share, cause and culprit."""

from __future__ import annotations

from operator import attrgetter, is_not, le

from loopcanary.diagnosis.causes.verdict import Verdict
from loopcanary.diagnosis.code.ownership import Owner
from loopcanary.diagnosis.code.stack_frames import Function, Path
from loopcanary.diagnosis.culprit.blamed import blamed, blamed_stacks
from loopcanary.diagnosis.culprit.blocker import find_blocker
from loopcanary.diagnosis.culprit.suspect import Suspect, find_suspect, to_culprit
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Cause, Portion

_LEAST = 0.1
"""A part of less is noise."""
_ALL = 0.9
"""From this share on, one part explains the stall."""
_PARTS_MAX = 6
_at_ns = attrgetter("sample.at_ns")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    cause: Cause
    samples: tuple[WeighedSample, ...]
    share: float
    blameless: bool


def find_portions(observation: Observation, verdict: Verdict, suspect: Suspect | None) -> tuple[Portion, ...]:
    """The parts, largest first; none if one culprit and cause explain the stall, or if it is a burst. A cause
    is split by function if the functions followed one another; functions that alternated are one computation.
    `suspect`: of the verdict's first finding."""
    if verdict.cause is Cause.BURST:
        return ()
    parts = [part for part in _parts(observation, verdict) if part.share >= _LEAST]
    parts.sort(key=lambda part: -part.share)
    if len(parts) < 2 or parts[0].share >= _ALL:
        return ()
    return tuple(_to_portion(observation, part, verdict, suspect) for part in parts[:_PARTS_MAX])


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


def _phases(samples: tuple[WeighedSample, ...]) -> list[tuple[WeighedSample, ...]]:
    """The samples by the innermost own function, if each of these had mostly one stretch of time."""
    if not samples:
        return []
    times = [seen.sample.at_ns for seen in samples]
    in_order = all(map(le, times, times[1:]))
    ordered = samples if in_order else tuple(sorted(samples, key=_at_ns))
    stacks = {seen.view.stack.path: seen.view.stack for seen in ordered}
    own = {path: _own_function(blamed(stack).path) for path, stack in stacks.items()}
    functions = [own[seen.view.stack.path] for seen in ordered]
    runs = 1 + sum(map(is_not, functions, functions[1:]))
    if runs > 2 * len(set(functions)):
        return [samples]
    groups: dict[Function | None, list[WeighedSample]] = {}
    for function, seen in zip(functions, ordered, strict=True):
        groups.setdefault(function, []).append(seen)
    return [tuple(group) for group in groups.values()] if len(groups) > 1 else [ordered]


def _own_function(path: Path) -> Function | None:
    return next((function for function in path.places if function.owner is Owner.OWN), None)


def _to_portion(observation: Observation, part: _Part, verdict: Verdict, suspect: Suspect | None) -> Portion:
    if part.blameless:
        suspect = None
    elif verdict.first is None or part.samples is not verdict.first.explained:
        suspect = find_suspect(blamed_stacks(part.samples))
    return Portion(
        share=round(min(1.0, part.share), 4),
        cause=part.cause,
        culprit=None if suspect is None else to_culprit(suspect, observation.sites),
        blocker=None if suspect is None else find_blocker(suspect, observation.sites, part.cause),
    )
