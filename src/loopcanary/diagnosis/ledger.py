"""Where a stall's wall time went, from the kernel's counters before, during and at its end."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from loopcanary.diagnosis.samples.weights import SampleWeights
from loopcanary.late_dataclass import dataclass
from loopcanary.model import (
    Collection,
    GilState,
    HostReading,
    KernelView,
    Ledger,
    Sample,
    StallEvidence,
    Surroundings,
)

TICK_NS = 4_000_000
"""The kernel adds to a running thread's CPU time at its ticks (CONFIG_HZ=250): a counter read by another
thread lags by as much."""


_ASLEEP = frozenset("SD")
"""States of threads in /proc that are not in the run queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """The counters at one moment; None: not known."""

    at_ns: int
    on_cpu_ns: int | None
    run_queue_ns: int | None


@dataclass(frozen=True, slots=True)
class _Span:
    """A time that is known to lie between two bounds, and the best guess at it."""

    low: int
    best: int
    high: int

    def __add__(self, other: _Span) -> _Span:
        return _Span(self.low + other.low, self.best + other.best, self.high + other.high)

    @property
    def error(self) -> int:
        return max(self.best - self.low, self.high - self.best)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Track:
    """The readings of a stall in order of time: the last at or before its begin, those inside."""

    begin_ns: int
    end_ns: int
    before: _Reading | None
    inside: tuple[_Reading, ...]
    lag_ns: int
    """How far the last reading may be behind the truth."""


def make_ledger(evidence: StallEvidence, end_ns: int, weights: SampleWeights) -> Ledger:
    """The ledger of the whole stall: `on_cpu`, `gil_wait`, `run_queue` and `blocked` sum to its duration.
    An entry that was not measured is None, and so is then `blocked`, which is what the others leave.

    The counters between first and last reading are exact. `docs/internals/diagnosis.md` has the
    formulas for the head before the first and the tail after the last one, and for `error_ns`.
    """
    gc_ns = _collected(evidence, end_ns, weights)
    gil_wait, gil_error = _gil_wait(evidence.samples, weights)
    track = _track(evidence, end_ns)
    on_cpu_span = _counter(track, "on_cpu_ns", lag_ns=track.lag_ns)
    if on_cpu_span is None:
        return Ledger(gc_ns=gc_ns, gil_wait_ns=gil_wait)
    duration = weights.duration_ns
    queue_span = _counter(track, "run_queue_ns", lag_ns=0, tail=_open_wait(evidence.samples, end_ns))
    on_cpu = _within(on_cpu_span.best, duration)
    counted = None if queue_span is None else _within(queue_span.best, duration - on_cpu)
    run_queue = None if counted is None else min(counted, _queued_at_most(evidence.samples, weights))
    left = duration - on_cpu - (run_queue or 0)
    if gil_wait is not None:
        gil_wait = _within(gil_wait, left)
    blocked = None if run_queue is None else left - (gil_wait or 0)
    error = on_cpu_span.error + (queue_span.error if queue_span is not None else 0) + gil_error
    error += (counted or 0) - (run_queue or 0)
    return Ledger(
        on_cpu_ns=on_cpu,
        gil_wait_ns=gil_wait,
        run_queue_ns=run_queue,
        blocked_ns=blocked,
        gc_ns=None if gc_ns is None else min(gc_ns, on_cpu),
        error_ns=min(error, duration),
    )


def _queued_at_most(samples: tuple[Sample, ...], weights: SampleWeights) -> int:
    """How long it can have waited for a core, for all that the samples saw: a thread that sleeps does not.
    Linux 6.12 and later leave one that went to sleep in the queue for a while (delayed dequeue), and were
    seen to count its sleep (6.18: 150 ms of 155, 12 of 13 samples asleep)."""
    asleep = sum(
        weight
        for sample, weight in zip(samples, weights.weights_ns, strict=True)
        if sample.kernel is not None and sample.kernel.thread_state in _ASLEEP
    )
    apart = weights.duration_ns // max(1, len(samples))
    return max(0, weights.duration_ns - asleep + 2 * apart)


def _within(value: int, limit: int) -> int:
    """Counters are read a few microseconds beside the clock: a part is never more than the whole."""
    return max(0, min(value, limit))


def _track(evidence: StallEvidence, end_ns: int) -> _Track:
    """The readings that the ledger needs. Of those inside the stall only the first and the last matter: the
    counters are sums."""
    begin_ns, before = evidence.begin_ns, evidence.before
    early = None if before is None or before.at_ns > begin_ns else _reading(before.at_ns, before.kernel)
    inside: list[_Reading] = []
    state = ""
    known = [sample for sample in evidence.samples if sample.kernel is not None and sample.at_ns <= end_ns]
    first = next((index for index, sample in enumerate(known) if sample.at_ns > begin_ns), len(known))
    for sample in known[first - 1 : first] if first else ():
        if sample.kernel is not None and (early is None or sample.at_ns >= early.at_ns):
            early = _reading(sample.at_ns, sample.kernel)
    for index in dict.fromkeys((first, len(known) - 1)) if first < len(known) else ():
        kernel = known[index].kernel
        if kernel is not None:
            inside.append(_reading(known[index].at_ns, kernel))
            state = kernel.thread_state
    exact_end = evidence.end_cpu_ns is not None and evidence.end_ns is not None
    if exact_end:
        inside.append(_Reading(at_ns=end_ns, on_cpu_ns=evidence.end_cpu_ns, run_queue_ns=None))
    return _Track(
        begin_ns=begin_ns,
        end_ns=end_ns,
        before=early,
        inside=tuple(inside),
        lag_ns=0 if exact_end or state != "R" else TICK_NS,
    )


def _reading(at_ns: int, kernel: KernelView) -> _Reading:
    return _Reading(at_ns=at_ns, on_cpu_ns=kernel.on_cpu_ns, run_queue_ns=kernel.run_queue_ns)


def _counter(track: _Track, name: str, *, lag_ns: int, tail: _Span | None = None) -> _Span | None:
    """One counter over the whole stall, None where its readings give no rate. `tail`: what is
    known to have come, and is not in its last reading."""
    known = [(r.at_ns, value) for r in track.inside if (value := getattr(r, name)) is not None]
    before = None if track.before is None else (track.before.at_ns, getattr(track.before, name))
    rate = _rate([*([before] if before is not None else []), *known])
    if not known or rate is None:
        return None
    (first_ns, first), (last_ns, last) = known[0], known[-1]
    head_ns, tail_ns = first_ns - track.begin_ns, track.end_ns - last_ns
    middle = max(0, last - first)
    tail = tail or _Span(0, _within(round(rate * tail_ns), tail_ns), tail_ns + (lag_ns if tail_ns else 0))
    return _head(track, before, first, head_ns, rate) + _Span(middle, middle, middle) + tail


def _open_wait(samples: tuple[Sample, ...], end_ns: int) -> _Span | None:
    """A wait for a core that went on at the last looks, None where there was none for sure: ready at two of
    them and more, and no CPU time between. The kernel counts a wait when it is over."""
    waiting = 0
    last = samples[-1].kernel if samples else None
    for sample in reversed(samples):
        seen = sample.kernel
        if last is None or seen is None or seen.thread_state != "R" or sample.waits_for_gil:
            break
        if (seen.on_cpu_ns, seen.run_queue_ns) != (last.on_cpu_ns, last.run_queue_ns):
            break
        waiting += 1
    if waiting < 2:
        return None
    since_ns, last_ns = samples[-waiting].at_ns, samples[-1].at_ns
    earliest_ns = samples[-waiting - 1].at_ns if waiting < len(samples) else since_ns
    return _Span(last_ns - since_ns, max(last_ns, end_ns) - since_ns, max(last_ns, end_ns) - earliest_ns)


def _head(track: _Track, before: tuple[int, int] | None, first: int, head_ns: int, rate: float) -> _Span:
    """The time from the begin to the first reading. What was counted since the reading before the stall was
    spent before the begin or in the head: at most all in the head, at least what did not fit before."""
    if before is None:
        return _Span(0, _within(round(rate * head_ns), head_ns), head_ns)
    counted = max(0, first - before[1])
    high = min(counted, head_ns)
    low = min(high, max(0, counted - (track.begin_ns - before[0])))
    return _Span(low, (low + high) // 2, high)


def _rate(readings: list[tuple[int, int]]) -> float | None:
    """Counted per nanosecond from the first to the last reading; None where they are one moment."""
    if len(readings) < 2 or readings[-1][0] <= readings[0][0]:
        return None
    return min(1.0, max(0, readings[-1][1] - readings[0][1]) / (readings[-1][0] - readings[0][0]))


def _gil_wait(samples: tuple[Sample, ...], weights: SampleWeights) -> tuple[int | None, int]:
    """Time waiting for the GIL by the samples' weights, None where no sample shows it; and how far off
    that may be: each change between two samples lay anywhere between them, and so did the ends."""
    if True not in [sample.waits_for_gil for sample in samples]:
        known = any(sample.gil is not GilState.UNKNOWN for sample in samples)
        return (0, 0) if known else (None, 0)
    waited = sum(
        weight for sample, weight in zip(samples, weights.weights_ns, strict=True) if sample.waits_for_gil
    )
    changes = sum(
        (right.at_ns - left.at_ns) // 2
        for left, right in itertools.pairwise(samples)
        if left.waits_for_gil != right.waits_for_gil
    )
    ends = weights.duration_ns - (samples[-1].at_ns - samples[0].at_ns)
    return waited, changes + max(0, ends)


def _collected(evidence: StallEvidence, end_ns: int, weights: SampleWeights) -> int | None:
    """Time of this thread in garbage collections; None where no record shows it.

    Short collections are not kept one by one, and many push the long ones out: then the process's counter
    says more. It counts for no more than the samples that found this thread collecting, since collections of
    other threads are in it.
    """
    overlap = overlap_ns(evidence.collections, evidence.tid, evidence.begin_ns, end_ns)
    totals = [sample.gc_total_ns for sample in evidence.samples]
    if overlap or evidence.collections:
        pairs = zip(evidence.samples, weights.weights_ns, strict=True)
        inside = sum(weight for sample, weight in pairs if sample.in_gc)
        return max(overlap, min(max(totals, default=0) - min(totals, default=0), inside))
    inside_any = True in [sample.in_gc for sample in evidence.samples]
    if not any(totals) and not inside_any:
        return 0 if totals and evidence.engine == "native" else None
    return max(totals) - min(totals) if inside_any else 0


def overlap_ns(collections: Iterable[Collection], tid: int, begin_ns: int, end_ns: int) -> int:
    """Time of one thread's collections that lies between two moments."""
    return sum(
        max(0, min(entry.end_ns, end_ns) - max(entry.begin_ns, begin_ns))
        for entry in collections
        if entry.tid == tid
    )


_POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}
"""SCHED_* of linux/sched.h."""


def make_surroundings(evidence: StallEvidence) -> Surroundings | None:
    """Over the window from the first to the last reading of the host; the thread's own figures from the
    first to the last sample. None where nothing was read."""
    faults, voluntary, involuntary = _of_thread(evidence)
    readings = evidence.host
    if not readings and faults is None and voluntary is None:
        return None
    window = readings[-1].at_ns - readings[0].at_ns if readings else 0
    last = readings[-1] if readings else HostReading(at_ns=0)
    return Surroundings(
        window_ns=max(0, window),
        system_cpu=_quotient(_grown(readings, "system_busy_ns"), _grown(readings, "system_total_ns")),
        stolen_cpu=_quotient(_grown(readings, "system_stolen_ns"), _grown(readings, "system_busy_ns")),
        process_cpu=_grown_rate(_grown(readings, "process_cpu_ns"), window),
        throttled_ns=_grown(readings, "throttled_ns"),
        pressure_cpu=_share(_grown(readings, "pressure_cpu_ns"), window),
        pressure_memory=_share(_grown(readings, "pressure_memory_ns"), window),
        pressure_io=_share(_grown(readings, "pressure_io_ns"), window),
        major_faults=faults,
        voluntary_switches=voluntary,
        involuntary_switches=involuntary,
        memory_available_bytes=last.memory_available_bytes,
        memory_used_bytes=last.memory_used_bytes,
        nice=last.nice,
        policy=None if last.policy is None else _POLICIES.get(last.policy, str(last.policy)),
        cores=last.cores or None,
    )


def _grown(readings: tuple[HostReading, ...], name: str) -> int | None:
    """By how much a counter grew between its first and last known reading; None for fewer than two."""
    known = [value for reading in readings if (value := getattr(reading, name)) is not None]
    return max(0, known[-1] - known[0]) if len(known) > 1 else None


def _quotient(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else round(min(1.0, part / whole), 4)


def _grown_rate(grown: int | None, window_ns: int) -> float | None:
    return None if grown is None or window_ns <= 0 else round(grown / window_ns, 4)


def _share(grown: int | None, window_ns: int) -> float | None:
    rate = _grown_rate(grown, window_ns)
    return None if rate is None else min(1.0, rate)


def _of_thread(evidence: StallEvidence) -> tuple[int | None, int | None, int | None]:
    """Major faults, voluntary and involuntary switches of the thread between its samples. The switches are
    read with some samples only; the others hold 0. The reading before the stall tells none of them."""
    views = [sample.kernel for sample in evidence.samples if sample.kernel is not None]
    if len(views) < 2:
        return None, None, None
    faults = max(0, views[-1].major_faults - views[0].major_faults)
    switched = (
        next(filter(_tells_switches, views), None),
        next(filter(_tells_switches, reversed(views)), None),
    )
    return faults, _switches(switched, "voluntary_switches"), _switches(switched, "involuntary_switches")


def _tells_switches(view: KernelView) -> bool:
    return bool(view.voluntary_switches or view.involuntary_switches)


def _switches(views: tuple[KernelView | None, KernelView | None], name: str) -> int | None:
    first, last = views
    if first is None or last is None or first is last:
        return None
    return max(0, int(getattr(last, name)) - int(getattr(first, name)))
