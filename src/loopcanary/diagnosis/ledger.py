"""Where a stall's wall time went, from the kernel's counters between its samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loopcanary.diagnosis.weights import SampleWeights
from loopcanary.model import Collection, GilState, Ledger, Sample, StallEvidence


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """What the kernel counted over the part of the stall that was seen."""

    span_ns: int
    on_cpu_ns: int
    run_queue_ns: int | None


def make_ledger(evidence: StallEvidence, end_ns: int, weights: SampleWeights) -> Ledger:
    """The ledger over the seen part of the stall: `on_cpu`, `gil_wait`, `run_queue` and `blocked` sum to
    it. An entry that was not measured is None, and so is then `blocked`, which is what the others leave.

    The counters are known at the samples. Where the thread's CPU time at the end is known, `on_cpu` runs
    to the end exactly; otherwise the rates between first and last sample are taken to hold for the rest
    of what was seen. Nothing is said of the head before the first sample.
    """
    gc_ns = _collected(evidence, end_ns)
    counted = _count(evidence, end_ns, weights)
    if counted is None:
        return Ledger(gc_ns=gc_ns, gil_wait_ns=_gil_wait(evidence.samples, weights))
    span = counted.span_ns
    on_cpu = _within(counted.on_cpu_ns, span)
    run_queue = None
    if counted.run_queue_ns is not None:
        run_queue = _within(counted.run_queue_ns, span - on_cpu)
    gil_wait = _gil_wait(evidence.samples, weights)
    if gil_wait is not None:
        gil_wait = _within(gil_wait, span - on_cpu - (run_queue or 0))
    blocked = None if run_queue is None else span - on_cpu - run_queue - (gil_wait or 0)
    return Ledger(
        on_cpu_ns=on_cpu,
        gil_wait_ns=gil_wait,
        run_queue_ns=run_queue,
        blocked_ns=blocked,
        gc_ns=None if gc_ns is None else min(gc_ns, on_cpu),
    )


def _within(value: int, limit: int) -> int:
    """Counters are read a few microseconds beside the clock: a part is never more than the whole."""
    return max(0, min(value, limit))


def _count(evidence: StallEvidence, end_ns: int, weights: SampleWeights) -> _Counted | None:
    viewed = [(sample.at_ns, sample.kernel) for sample in evidence.samples if sample.kernel is not None]
    if not viewed:
        return None
    (first_ns, first), (last_ns, last) = viewed[0], viewed[-1]
    step = last_ns - first_ns
    if evidence.end_cpu_ns is not None and evidence.end_ns is not None:
        span = max(0, end_ns - first_ns)
        on_cpu = evidence.end_cpu_ns - first.on_cpu_ns
    elif step > 0:
        span = max(0, min(weights.covered_ns, end_ns - first_ns))
        on_cpu = (last.on_cpu_ns - first.on_cpu_ns) * span // step
    else:
        return None
    waited = (last.run_queue_ns - first.run_queue_ns) * span // step if step > 0 else None
    return _Counted(span_ns=span, on_cpu_ns=on_cpu, run_queue_ns=waited)


def _gil_wait(samples: tuple[Sample, ...], weights: SampleWeights) -> int | None:
    """Time seen waiting for the GIL; None where no sample could tell."""
    if all(sample.gil is GilState.UNKNOWN and not sample.waits_for_gil for sample in samples):
        return None
    return sum(
        seen_ns for sample, seen_ns in zip(samples, weights.seen_ns, strict=True) if sample.waits_for_gil
    )


def _collected(evidence: StallEvidence, end_ns: int) -> int | None:
    """Time of this thread in garbage collections; None where nothing was recorded that would tell."""
    overlap = overlap_ns(evidence.collections, evidence.tid, evidence.begin_ns, end_ns)
    if overlap or evidence.collections:
        return overlap
    totals = [sample.gc_total_ns for sample in evidence.samples]
    if not any(totals) and not any(sample.in_gc for sample in evidence.samples):
        return 0 if totals and evidence.engine == "native" else None
    # The counter is the process's: a collection of another thread is no time of this one.
    return max(totals) - min(totals) if any(sample.in_gc for sample in evidence.samples) else 0


def overlap_ns(collections: Iterable[Collection], tid: int, begin_ns: int, end_ns: int) -> int:
    """Time of one thread's collections that lies between two moments."""
    return sum(
        max(0, min(entry.end_ns, end_ns) - max(entry.begin_ns, begin_ns))
        for entry in collections
        if entry.tid == tid
    )
