"""How much of a stall each sample stands for, and how much was seen at all."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter, sub

from loopcanary.diagnosis.code.stack_frames import PlacedStack, ShownStack
from loopcanary.late_dataclass import dataclass
from loopcanary.model import (
    GilState,
    KernelView,
    Sample,
    StallEvidence,
    Surroundings,
    ThreadReading,
    WeightedStack,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleWeights:
    """Per sample, in order of time: `weights_ns` sum to the stall's duration, `seen_ns` to `covered_ns`."""

    weights_ns: tuple[int, ...]
    seen_ns: tuple[int, ...]
    duration_ns: int
    covered_ns: int


def weigh(times_ns: Sequence[int], begin_ns: int, end_ns: int, interval_ns: int) -> SampleWeights:
    """Gives each moment of the stall to the sample nearest to it.

    The time between two samples is seen. So is the time after the last one, up to the longest step
    between samples (or `interval_ns`, the one in force). The head before the first sample is not:
    no look was taken yet. `times_ns` ascend; those outside the stall are taken as at its ends.
    """
    duration = max(0, end_ns - begin_ns)
    times = list(times_ns)
    if times and (times[0] < begin_ns or times[-1] > begin_ns + duration):
        times = [min(max(time, begin_ns), begin_ns + duration) for time in times]
    if not times:
        return SampleWeights(weights_ns=(), seen_ns=(), duration_ns=duration, covered_ns=0)
    later = times[1:]
    middles = [(left + right) // 2 for left, right in zip(times, later, strict=False)]
    longest = max(map(sub, later, times), default=interval_ns)
    tail = min(begin_ns + duration - times[-1], max(interval_ns, longest))
    weights = _between([begin_ns, *middles, begin_ns + duration])
    seen = _between([times[0], *middles, times[-1] + tail])
    return SampleWeights(weights_ns=weights, seen_ns=seen, duration_ns=duration, covered_ns=sum(seen))


def _between(edges: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(sub, edges[1:], edges))


def fit_to_counters(
    seen_ns: Sequence[int], asleep: Sequence[bool], duration_ns: int, slept_ns: tuple[int, int]
) -> tuple[int, ...]:
    """The weights, with those of samples that found the thread asleep fitted to what the kernel's counters
    say: of `duration_ns` it slept at least and at most `slept_ns`. The other samples have the rest.

    Whatever wakes threads at the same moments as the watchdog is seen too often: a thread that gave up the
    GIL for half a millisecond at each look has not slept for the whole stall. And where the first look came
    late, sleep is seen too little.
    """
    total = sum(seen_ns)
    slept = sum(weight for weight, sleeps in zip(seen_ns, asleep, strict=True) if sleeps)
    low, high = (min(total, total * bound // duration_ns) if duration_ns > 0 else slept for bound in slept_ns)
    fitted = max(low, min(slept, high))
    if fitted == slept or slept in (0, total):
        return tuple(seen_ns)
    asleep_scale, awake_scale = fitted / slept, (total - fitted) / (total - slept)
    return tuple(
        round(weight * (asleep_scale if sleeps else awake_scale))
        for weight, sleeps in zip(seen_ns, asleep, strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedStacks:
    """Stacks that read the same to a person are one: heaviest first, of equal ones the earliest first."""

    shown: tuple[WeightedStack, ...]
    numbers: dict[ShownStack, int]


def merge_stacks(stacks: Iterable[tuple[PlacedStack, int, bool]]) -> MergedStacks:
    """Merges stacks. Each entry: stack, weight, truncated."""
    held: dict[ShownStack, int] = {}
    cut: set[ShownStack] = set()
    for stack, weight_ns, truncated in stacks:
        shown = stack.shown
        held[shown] = held.get(shown, 0) + weight_ns
        if truncated:
            cut.add(shown)
    ranked = sorted(held.items(), key=itemgetter(1), reverse=True)
    return MergedStacks(
        shown=tuple(
            [
                WeightedStack(weight_ns=weight_ns, frames=stack.frames, truncated=stack in cut)
                for stack, weight_ns in ranked
            ]
        ),
        numbers={stack: number for number, (stack, _) in enumerate(ranked)},
    )


_LATE_INTERVALS = 5
_LATE_NS = 50_000_000
_MOVED_SHARE = 0.1
"""A thread that used less than this of a gap did not run in it."""
_CALM_MACHINE = 0.7
"""Cores less busy than this: a watchdog that is late was kept from running, not crowded out."""
_at_ns = attrgetter("at_ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A time without a look, beyond what the interval explains."""

    begin_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    at_ns: int
    on_cpu_ns: int | None
    sample: Sample | None = None


def find_gaps(
    evidence: StallEvidence, end_ns: int, first_sample_ns: int, around: Surroundings | None
) -> tuple[Gap, ...]:
    """The gaps of a stall, in order. `evidence.samples` ascend; `first_sample_ns`: when the first sample
    was due. None of the portable engine: its watchdog needs the GIL, so that it is late for other reasons.
    """
    if evidence.engine != "native" or evidence.samples_dropped:
        return ()
    late_ns = max(_LATE_INTERVALS * evidence.sample_interval_ns, _LATE_NS)
    times = [evidence.begin_ns, *map(_at_ns, evidence.samples), end_ns]
    if max(map(sub, times[1:], times)) <= late_ns:
        return ()  # as nearly always
    points = _points(evidence, end_ns)
    gaps: list[Gap] = []
    for index, (left, right) in enumerate(itertools.pairwise(points)):
        due = first_sample_ns if index == 0 else evidence.sample_interval_ns
        if right.at_ns - left.at_ns > due + late_ns and _stood(left, right, around):
            gaps.append(Gap(begin_ns=left.at_ns + due, end_ns=right.at_ns))
    return tuple(gaps)


def _points(evidence: StallEvidence, end_ns: int) -> list[_Point]:
    before = None if evidence.before is None else evidence.before.kernel.on_cpu_ns
    points = [_Point(at_ns=evidence.begin_ns, on_cpu_ns=before)]
    for sample in evidence.samples:
        if evidence.begin_ns <= sample.at_ns <= end_ns:
            counted = None if sample.kernel is None else sample.kernel.on_cpu_ns
            points.append(_Point(at_ns=sample.at_ns, on_cpu_ns=counted, sample=sample))
    points.append(_Point(at_ns=end_ns, on_cpu_ns=evidence.end_cpu_ns))
    return points


def _stood(left: _Point, right: _Point, around: Surroundings | None) -> bool:
    """Whether the thread did not run between two points though it waited for nothing. A thread that slept on
    both sides, or on the one that was seen, waited for something of its own; unless the machine had cores to
    spare: then only a stop can have kept the watchdog away."""
    if left.on_cpu_ns is None or right.on_cpu_ns is None:
        return False
    if right.on_cpu_ns - left.on_cpu_ns > _MOVED_SHARE * (right.at_ns - left.at_ns):
        return False
    seen = [point.sample for point in (left, right) if point.sample is not None]
    if not any(_asleep(sample) for sample in seen):
        return True
    return around is not None and around.system_cpu is not None and around.system_cpu < _CALM_MACHINE


def _asleep(sample: Sample) -> bool:
    return sample.kernel is not None and sample.kernel.thread_state in ("S", "D")


def cut_out(times_ns: Sequence[int], gaps: tuple[Gap, ...]) -> list[int]:
    """The times on a clock that is stopped in the gaps."""
    return [
        time - sum(max(0, min(time, gap.end_ns) - gap.begin_ns) for gap in gaps if gap.begin_ns < time)
        for time in times_ns
    ]


_RAN_SHARE = 0.5
"""A thread that ran or waited for a core for less than this of a time waited for the GIL in it."""


def settle_gil_waits(
    samples: Sequence[Sample], begin_ns: int, before: ThreadReading | None
) -> tuple[Sample, ...]:
    """Counts as waiting for the GIL: samples of a ready thread while another one held the GIL, if the next
    other sample waits, the one before does (or there is none), and the thread's counters grew little.

    `begin_ns`: of the stall; `before`: a reading from before it. The samples come back in order of time.
    """
    settled = list(samples)
    since = None if before is None or before.at_ns > begin_ns else (begin_ns, before.kernel)
    open_from = 0
    for index, sample in enumerate(samples):
        if sample.waits_for_gil and sample.kernel is not None:
            if since is not None and _stood_still(since, (sample.at_ns, sample.kernel)):
                for between in range(open_from, index):
                    settled[between] = replace(samples[between], waits_for_gil=True)
            since, open_from = (sample.at_ns, sample.kernel), index + 1
        elif not _may_ask_for_it(sample):
            since = None
    return tuple(settled)


def _may_ask_for_it(sample: Sample) -> bool:
    return sample.gil is GilState.OTHER and sample.kernel is not None and sample.kernel.thread_state == "R"


def _stood_still(since: tuple[int, KernelView], until: tuple[int, KernelView]) -> bool:
    """Whether the counters grew little. The later sample slept: its counters hold all that was before."""
    (since_ns, then), (until_ns, now) = since, until
    moved_ns = now.on_cpu_ns + now.run_queue_ns - then.on_cpu_ns - then.run_queue_ns
    return moved_ns < _RAN_SHARE * (until_ns - since_ns)
