"""The one entry point: gathers what the parts find into a Stall."""

from __future__ import annotations

from dataclasses import dataclass, replace

from loopcanary.diagnosis.advice import advise
from loopcanary.diagnosis.blocker import find_blocker
from loopcanary.diagnosis.calls import CallSites, callee_of
from loopcanary.diagnosis.cause import Verdict, judge
from loopcanary.diagnosis.causes import RULES
from loopcanary.diagnosis.causes.unknown import no_sample
from loopcanary.diagnosis.codepaths import CodePaths, captured
from loopcanary.diagnosis.culprit import Suspect, find_suspect, to_culprit
from loopcanary.diagnosis.fingerprint import fingerprint
from loopcanary.diagnosis.frames import FrameTable
from loopcanary.diagnosis.ledger import make_ledger
from loopcanary.diagnosis.observation import Observation, see
from loopcanary.diagnosis.ownership import Ownership, module_name
from loopcanary.diagnosis.sources import FileSources, SourceReader
from loopcanary.diagnosis.title import make_title
from loopcanary.diagnosis.weights import SampleWeights, merge_stacks, weigh
from loopcanary.model import (
    Blocker,
    Cause,
    Clock,
    Config,
    Session,
    Severity,
    Stall,
    StallEvidence,
    StallState,
    ThreadStack,
    ThreadView,
    WeightedStack,
)
from loopcanary.model.stall import ANR_NS, HANG_NS
from loopcanary.model.units import format_duration

_FILE_SOURCES = FileSources()
_THIN_COVERAGE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Case:
    """What is worked out once and used by several parts."""

    evidence: StallEvidence
    weights: SampleWeights
    table: FrameTable
    observation: Observation
    blocker: Blocker | None
    paths: CodePaths


def diagnose(
    evidence: StallEvidence,
    session: Session,
    config: Config,
    clock: Clock,
    *,
    state: StallState,
    sources: SourceReader = _FILE_SOURCES,
    paths: CodePaths | None = None,
) -> Stall:
    """Judges one stall.

    `clock`: of the watched process. `paths`: where its code lies; None: as in this process. Raises
    nothing for any evidence a reader can produce. Takes under 5 ms for 384 samples; one thread at a time
    may use the same `sources`.
    """
    case = _open_case(evidence, session, config, sources, paths or captured())
    observation = case.observation
    verdict = judge(observation, RULES, case.weights.coverage)
    suspect = observation.suspect
    culprit = None if suspect is None else to_culprit(suspect, observation.sites)
    blocker = _fit_blocker(case.blocker, verdict.cause)
    names = evidence.names
    stall = Stall(
        id=f"{session.id}-{evidence.serial}",
        session=session.id,
        pid=session.pid,
        fingerprint="",
        title=make_title(evidence, verdict.cause, culprit, blocker, verdict.holder),
        thread=evidence.thread_name or f"thread {evidence.tid}",
        loop=evidence.loop_kind,
        scope=evidence.scope,
        state=state,
        severity=severity_of(case.weights.duration_ns),
        began_wall_ns=clock.to_wall_ns(evidence.begin_ns),
        duration_ns=case.weights.duration_ns,
        threshold_ns=evidence.threshold_ns,
        callback=None if names is None else names.name,
        task=None if names is None else names.task,
        scene=evidence.scene,
        cause=verdict.cause,
        confidence=verdict.confidence,
        evidence=_with_coverage(case, verdict),
        advice=advise(verdict.cause, blocker, _reached(suspect, case.paths), evidence.loop_kind),
        culprit=culprit,
        blocker=blocker,
        holder=verdict.holder,
        ledger=observation.ledger,
        samples=len(evidence.samples),
        coverage=round(case.weights.coverage, 4),
        dropped_samples=sum(count for _, count in evidence.samples_dropped),
        stacks=_merge(case),
        threads=_other_threads(evidence, case),
        queue_ns=evidence.queue_ns,
        engine=evidence.engine,
    )
    return replace(stall, fingerprint=fingerprint(stall, case.paths))


def severity_of(duration_ns: int) -> Severity:
    """Stall, hang or ANR by how long it lasted."""
    if duration_ns >= ANR_NS:
        return Severity.ANR
    return Severity.HANG if duration_ns >= HANG_NS else Severity.STALL


def _own_machine() -> str:
    import platform  # only where the session does not say it

    return platform.machine()


def _open_case(
    evidence: StallEvidence, session: Session, config: Config, sources: SourceReader, paths: CodePaths
) -> _Case:
    end_ns = max(evidence.begin_ns, evidence.last_look_ns if evidence.end_ns is None else evidence.end_ns)
    evidence = replace(evidence, samples=tuple(sorted(evidence.samples, key=lambda sample: sample.at_ns)))
    times = [sample.at_ns for sample in evidence.samples]
    weights = weigh(times, evidence.begin_ns, end_ns, evidence.sample_interval_ns)
    table = FrameTable(Ownership(paths, config.concern))
    sites = CallSites(sources, session.started_wall_ns)
    seen = see(evidence.samples, weights.seen_ns, table.place, session.machine or _own_machine())
    suspect = find_suspect([(entry.work, entry.weight_ns) for entry in seen if entry.placed])
    observation = Observation(
        evidence=evidence,
        duration_ns=weights.duration_ns,
        seen=seen,
        total_ns=weights.covered_ns,
        sample_count=len(seen),
        ledger=make_ledger(evidence, end_ns, weights),
        sites=sites,
        place=table.place,
        suspect=suspect,
        threads=_names(evidence),
    )
    blocker = None if suspect is None else find_blocker(suspect, sites)
    return _Case(
        evidence=evidence,
        weights=weights,
        table=table,
        observation=observation,
        blocker=blocker,
        paths=paths,
    )


def _fit_blocker(blocker: Blocker | None, cause: Cause) -> Blocker | None:
    """Of Python code that computes, only a call blocks; the expression it happened to be at does not."""
    if blocker is None or cause is not Cause.CPU or blocker.call is None:
        return blocker
    if callee_of(blocker.call) is not None:
        return blocker
    return None if blocker.function is None else replace(blocker, call=None)


def _reached(suspect: Suspect | None, paths: CodePaths) -> tuple[str, ...]:
    """Modules of the frames below the culprit, outermost first; its own where there are none."""
    if suspect is None:
        return ()
    files = dict.fromkeys(view.shown.file for view in reversed(suspect.below))
    if not suspect.in_app:
        files = {suspect.view.shown.file: None, **files}
    return tuple(module_name(file, paths) for file in files)


def _with_coverage(case: _Case, verdict: Verdict) -> tuple[str, ...]:
    """The verdict's sentences, with a warning where little of the stall was seen."""
    evidence, weights = case.evidence, case.weights
    sentences = verdict.evidence
    if not evidence.samples:
        missing = no_sample(case.observation)
        return sentences if missing in sentences else (*sentences, missing)
    if weights.coverage < _THIN_COVERAGE:
        seen = format_duration(weights.covered_ns)
        sentences += (f"The samples cover only {seen} of {format_duration(weights.duration_ns)}.",)
    return sentences


def _merge(case: _Case) -> tuple[WeightedStack, ...]:
    return merge_stacks(
        (seen.placed, weight_ns, seen.sample.stack is not None and seen.sample.stack.truncated)
        for seen, weight_ns in zip(case.observation.seen, case.weights.weights_ns, strict=True)
        if seen.placed
    )


def _names(evidence: StallEvidence) -> dict[int, str]:
    own = ((evidence.tid, evidence.thread_name),)
    read = tuple((thread.tid, thread.name) for thread in evidence.threads)
    return {tid: name for tid, name in (*own, *evidence.thread_names, *read) if name}


def _other_threads(evidence: StallEvidence, case: _Case) -> tuple[ThreadView, ...]:
    """All threads but our own drain, which the program cannot see either."""
    names = _names(evidence)
    return tuple(
        _view(thread, names.get(thread.tid, ""), case.table)
        for thread in evidence.threads
        if not names.get(thread.tid, "").startswith("loopcanary-")
    )


def _view(thread: ThreadStack, name: str, table: FrameTable) -> ThreadView:
    placed = () if thread.stack is None else table.place(thread.stack).frames
    return ThreadView(
        tid=thread.tid,
        name=name,
        state=thread.thread_state,
        holds_gil=thread.holds_gil,
        waits_for_gil=thread.waits_for_gil,
        frames=tuple([view.shown for view in placed]),
    )
