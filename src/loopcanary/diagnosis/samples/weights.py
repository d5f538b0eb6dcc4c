"""How much of a stall each sample stands for, and how much was seen at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter, sub

from loopcanary.diagnosis.code.stack_frames import PlacedStack, ShownStack
from loopcanary.late_dataclass import dataclass
from loopcanary.model import WeightedStack


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
    """Which of them a stack is."""


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
