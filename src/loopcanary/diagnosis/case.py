"""What of a stall's evidence is worked out once: its samples weighed and placed, its ledger, its gaps."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from loopcanary.diagnosis.code.call_sites import CallSites
from loopcanary.diagnosis.code.frame_table import FrameTable
from loopcanary.diagnosis.code.ownership import CodePaths, Ownership
from loopcanary.diagnosis.ledger import make_ledger, make_surroundings
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import one_of_each, see
from loopcanary.diagnosis.samples.weights import (
    Gap,
    SampleWeights,
    cut_out,
    find_gaps,
    fit_to_counters,
    settle_gil_waits,
    weigh,
)
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Config, Ledger, Session, StallEvidence
from loopcanary.source_text import SourceReader

_ASLEEP = ("S", "D")
"""The kernel's letters for a thread that sleeps."""
_at_ns = attrgetter("at_ns")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StallCase:
    """What is worked out once and used by several parts."""

    evidence: StallEvidence
    weights: SampleWeights
    placed_ns: tuple[int, ...]
    """Of each sample that has a stack, the seen time that it stands for."""
    coverage: float
    """Their share of the stall's time, 0 to 1."""
    table: FrameTable
    observation: Observation
    paths: CodePaths


def open_case(
    evidence: StallEvidence, session: Session, config: Config, sources: SourceReader, paths: CodePaths
) -> StallCase:
    """The case of a stall. `sources`: what reads source text; `paths`: where the process's code lies."""
    end_ns = max(evidence.begin_ns, evidence.last_look_ns if evidence.end_ns is None else evidence.end_ns)
    ordered = sorted(evidence.samples, key=_at_ns)
    evidence = replace(evidence, samples=settle_gil_waits(ordered, evidence.begin_ns, evidence.before))
    times = [sample.at_ns for sample in evidence.samples]
    weights = weigh(times, evidence.begin_ns, end_ns, evidence.sample_interval_ns)
    around = make_surroundings(evidence)
    due_ns = max(config.first_sample_ns, evidence.threshold_ns // 5)
    gaps = find_gaps(evidence, end_ns, due_ns, around)
    counted = _without_gaps(evidence, times, end_ns, gaps) if gaps else weights
    table = FrameTable(Ownership(paths, config.concern))
    ledger = make_ledger(evidence, end_ns, weights)
    votes = _votes(evidence, counted, ledger)
    sites = CallSites(sources, session.started_wall_ns)
    end = None if evidence.end_ns is None or evidence.end_cpu_ns is None else (end_ns, evidence.end_cpu_ns)
    seen = see(evidence.samples, votes, table.place, sites, session.machine or _own_machine(), end=end)
    frozen_ns = sum(gap.length_ns for gap in gaps)
    placed_ns = tuple(ns for ns, one in zip(counted.seen_ns, seen, strict=True) if one.stack)
    observation = Observation(
        evidence=evidence,
        duration_ns=weights.duration_ns,
        seen=seen,
        kinds=one_of_each(seen),
        total_ns=counted.covered_ns + frozen_ns,
        sample_count=len(seen),
        ledger=ledger,
        frozen_ns=frozen_ns,
        surroundings=around,
        sites=sites,
        place=table.place,
        place_outer=table.place_outer,
        priority_changes=tuple(one for one in session.priority_changes if one.tid in (None, evidence.tid)),
        cores=session.cores,
        threads=thread_names(evidence),
    )
    return StallCase(
        evidence=evidence,
        weights=weights,
        placed_ns=placed_ns,
        coverage=sum(placed_ns) / weights.duration_ns if weights.duration_ns else float(bool(placed_ns)),
        table=table,
        observation=observation,
        paths=paths,
    )


def _votes(evidence: StallEvidence, counted: SampleWeights, ledger: Ledger) -> tuple[int, ...]:
    """The weights of the samples, bounded by what the kernel's counters allow."""
    if ledger.on_cpu_ns is None:
        return counted.seen_ns
    off_ns, error_ns = counted.duration_ns - ledger.on_cpu_ns, ledger.error_ns or 0
    at_most = max(0, off_ns + error_ns)
    at_least = 0 if ledger.run_queue_ns is None else max(0, off_ns - ledger.run_queue_ns - error_ns)
    asleep = [
        sample.kernel is not None and sample.kernel.thread_state in _ASLEEP for sample in evidence.samples
    ]
    return fit_to_counters(counted.seen_ns, asleep, counted.duration_ns, (at_least, at_most))


def _without_gaps(
    evidence: StallEvidence, times_ns: list[int], end_ns: int, gaps: tuple[Gap, ...]
) -> SampleWeights:
    """The weights of the samples on a clock that is stopped in the gaps."""
    begin_ns, interval_ns = evidence.begin_ns, evidence.sample_interval_ns
    return weigh(cut_out(times_ns, gaps), begin_ns, cut_out([end_ns], gaps)[0], interval_ns)


def thread_names(evidence: StallEvidence) -> dict[int, str]:
    own = ((evidence.tid, evidence.thread_name),)
    read = tuple((thread.tid, thread.name) for thread in evidence.threads)
    return {tid: name for tid, name in (*own, *evidence.thread_names, *read) if name}


def _own_machine() -> str:
    import platform  # only where the session does not say it

    return platform.machine()
