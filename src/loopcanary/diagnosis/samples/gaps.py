"""Time in which neither the watchdog nor the watched thread ran: a stopped, frozen or starved process.

The watchdog looks at fixed intervals and needs nothing from the program. If it comes much too late and the
thread did not compute meanwhile, something outside kept both from running, and the code is not to blame.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import attrgetter, sub

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Sample, StallEvidence, Surroundings

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
