"""Figures of loops and of pools of threads, stalls or not."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from math import sqrt
from typing import Any

from loopcanary.model import LaneTotals, LoopHealth
from loopcanary.model.evidence import SLICE_NS, congested_slices

_BUCKET_WIDTH = 1 / 16
"""Of the engines' histograms: an estimated duration is off by no more than this share."""

Turns = tuple[float, int]
"""A duration in nanoseconds, and how many turns had it."""
Cut = tuple[int, int]
"""A stall's length in nanoseconds, and how much of it is taken away."""


def loop_health(totals: LaneTotals, now_ns: int) -> LoopHealth:
    """The figures of one watched thread from its opening to its closing, or to `now_ns`; a turn that is
    going on counts with what it has lasted so far."""
    end_ns = now_ns if totals.closed_ns is None else totals.closed_ns
    window = max(0, end_ns - totals.opened_ns)
    current = 0
    if totals.busy_since_ns is not None:
        current = min(window, max(0, end_ns - totals.busy_since_ns))
    busy = totals.busy_ns + current
    longest = max(totals.longest_turn_ns, current)
    turns = estimate_turns(totals.histogram, totals.busy_ns_squared, totals.longest_turn_ns)
    if current:
        turns.append((float(current), 1))
    slices = -(-window // SLICE_NS)
    congested = totals.slices_congested + congested_slices(window - current, window)
    return LoopHealth(
        thread=totals.thread_name,
        kind=totals.loop_kind,
        turns=totals.turns,
        callbacks=totals.callbacks,
        busy_ns=busy,
        window_ns=window,
        utilization=min(1.0, busy / window) if window else 0.0,
        delay_p50_ns=delay_quantile(turns, window, 0.50, longest),
        delay_p90_ns=delay_quantile(turns, window, 0.90, longest),
        delay_p99_ns=delay_quantile(turns, window, 0.99, longest),
        delay_p999_ns=delay_quantile(turns, window, 0.999, longest),
        delay_max_ns=longest,
        delay_mean_ns=(totals.busy_ns_squared + current * current) // (2 * window) if window else 0,
        queue_mean_ns=totals.queue_ns_total // totals.callbacks if totals.callbacks else 0,
        queue_max_ns=totals.queue_ns_max,
        stalls=totals.stalls,
        stalled_ns=totals.stalled_ns,
        callback_weighted_ns=totals.callback_ns_squared // totals.callback_ns if totals.callback_ns else None,
        slices=slices,
        slices_congested=min(slices, congested),
        gc_ns=totals.gc_ns,
        run_queue_ns=totals.run_queue_ns,
        histogram=_with(totals.histogram, current),
    )


def delay_without(health: LoopHealth, cuts: Sequence[Cut], quantile: float = 0.99) -> int:
    """The loop delay as it would be with some stalls shortened, in nanoseconds.

    Args:
        health: The figures of the loop. Its histogram has the turns of these stalls; its window stays.
        cuts: The stalls. The turn of each stays with the rest.
        quantile: The share of arrivals that wait no longer than the delay.
    """
    squares = 2 * health.delay_mean_ns * health.window_ns
    turns = turns_without(estimate_turns(health.histogram, squares, health.delay_max_ns), cuts)
    longest = max((round(duration) for duration, _ in turns), default=0)
    return delay_quantile(turns, health.window_ns, quantile, longest)


def delay_shares(health: LoopHealth, times_ns: Sequence[int]) -> list[float]:
    """The share of arrivals at random moments that wait longer than each of these times, 0 to 1."""
    squares = 2 * health.delay_mean_ns * health.window_ns
    turns = estimate_turns(health.histogram, squares, health.delay_max_ns)
    exceeding = (sum(max(0.0, length - time) * count for length, count in turns) for time in times_ns)
    return [min(1.0, ns / health.window_ns) for ns in exceeding]


def turns_without(turns: Sequence[Turns], cuts: Sequence[Cut]) -> list[Turns]:
    """The turns with these stalls shortened. Each stall is in the shortest turn that can hold it, the longest
    stall first. What a turn lasted beyond its stall counts if it is more than the error of a bucket."""
    ascending = sorted(turns)
    lengths, counts = [turn[0] for turn in ascending], [turn[1] for turn in ascending]
    rests: list[Turns] = []
    for stall, taken in sorted(cuts, reverse=True):
        of = _shortest_with(lengths, counts, stall * (1 - _BUCKET_WIDTH))
        if of is None:
            break
        counts[of] -= 1
        beyond = lengths[of] - stall
        rest = stall - taken + (beyond if beyond > _BUCKET_WIDTH * lengths[of] else 0)
        if rest > 0:
            rests.append((min(rest, lengths[of]), 1))
    return [*(turn for turn in zip(lengths, counts, strict=True) if turn[1]), *rests]


def _with(histogram: Sequence[tuple[int, int]], duration_ns: int) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((*histogram, (duration_ns, 1)))) if duration_ns else tuple(histogram)


def _shortest_with(lengths: Sequence[float], counts: Sequence[int], least: float) -> int | None:
    """The index of the shortest turn of at least this length; else of the longest."""
    first = bisect_left(lengths, least)
    places = chain(range(first, len(lengths)), range(first - 1, -1, -1))
    return next((place for place in places if counts[place] > 0), None)


def estimate_turns(
    histogram: Sequence[tuple[int, int]], busy_ns_squared: int, longest_ns: int
) -> list[Turns]:
    """A duration for each bucket: its upper bound, scaled by one factor for all such that the sum of
    squares is the exact one. The longest turn is known, and taken out of its bucket as it is.

    Long turns make the delays, and squares weigh them: the factor settles where they lie within their
    buckets. Every estimate is within the width of a bucket (6.25 % in the native engine's histogram).
    """
    counts = [[upper, count] for upper, count in histogram if count > 0]
    if not counts:
        return []
    counts[-1][1] -= 1
    known = float(longest_ns)
    rest = max(0.0, busy_ns_squared - known * known)
    squares = float(sum(count * upper * upper for upper, count in counts))
    factor = min(1.0, sqrt(rest / squares)) if squares else 1.0
    turns = [(min(known, upper * factor), count) for upper, count in counts if count]
    return [*turns, (known, 1)]


def delay_quantile(turns: Sequence[Turns], window_ns: int, quantile: float, longest_ns: int) -> int:
    """The delay that this share of arrivals at random moments stays within.

    An arrival waits for the rest of the turn it falls into: P(delay > x) = sum(max(0, d - x)) / T. With
    N turns longer than x that last S together, the delay at P = 1 - quantile is (S - P T) / N.
    """
    if window_ns <= 0:
        return 0
    exceeded = (1.0 - quantile) * window_ns
    ranked = sorted(turns, reverse=True)
    number, total = 0, 0.0
    for index, (duration, count) in enumerate(ranked):
        number += count
        total += duration * count
        below = ranked[index + 1][0] if index + 1 < len(ranked) else 0.0
        delay = (total - exceeded) / number
        if delay >= below:
            return round(min(max(0.0, delay), float(longest_ns)))
    return 0


_THREAD = "thread"
_NUMBER = re.compile(r"\d+")
_LONGEST = ("longest_turn_ns", "queue_ns_max")
_SUMS = (
    *("turns", "callbacks", "busy_ns", "busy_ns_squared", "queue_ns_total", "slices_congested"),
    *("callback_ns", "callback_ns_squared", "stalls", "stalled_ns"),
)
_SUMS_OF_KNOWN = ("gc_ns", "on_cpu_ns", "run_queue_ns")


def process_health(lanes: Iterable[LaneTotals], now_ns: int) -> tuple[LoopHealth, ...]:
    """The figures of all loops, in the lanes' order; threads without a loop whose names differ in their
    numbers alone count as one thread, which lived as long as all of them together."""
    pools: dict[tuple[object, ...], list[LaneTotals]] = {}
    for lane in lanes:
        is_of_pool = lane.loop_kind == _THREAD and _NUMBER.search(lane.thread_name)
        key = (_NUMBER.sub("*", lane.thread_name),) if is_of_pool else (lane.lane, lane.generation)
        pools.setdefault(key, []).append(lane)
    return tuple(loop_health(_merged(pool, now_ns), now_ns) for pool in pools.values())


def _merged(pool: Sequence[LaneTotals], now_ns: int) -> LaneTotals:
    if len(pool) == 1:
        return pool[0]
    ended = [_ended(lane, now_ns) for lane in pool]
    histogram: Counter[int] = Counter()
    for lane in ended:
        histogram.update(dict(lane.histogram))
    known: dict[str, Any] = {
        name: _sum_of_known(getattr(lane, name) for lane in ended) for name in _SUMS_OF_KNOWN
    }
    return replace(
        pool[0],
        thread_name=f"{_NUMBER.sub('*', pool[0].thread_name)}, {len(pool)} threads",
        opened_ns=now_ns - sum(_end_ns(lane, now_ns) - lane.opened_ns for lane in ended),
        closed_ns=now_ns,
        busy_since_ns=None,
        histogram=tuple(sorted(histogram.items())),
        **{name: max(getattr(lane, name) for lane in ended) for name in _LONGEST},
        **{name: sum(getattr(lane, name) for lane in ended) for name in _SUMS},
        **known,
    )


def _ended(lane: LaneTotals, now_ns: int) -> LaneTotals:
    """The lane as if it ended now: a turn that goes on counts with what it has lasted so far."""
    end_ns = _end_ns(lane, now_ns)
    opened_ns = min(lane.opened_ns, end_ns)
    current = (
        0 if lane.busy_since_ns is None else min(end_ns - opened_ns, max(0, end_ns - lane.busy_since_ns))
    )
    return replace(
        lane,
        opened_ns=opened_ns,
        closed_ns=end_ns,
        busy_since_ns=None,
        busy_ns=lane.busy_ns + current,
        busy_ns_squared=lane.busy_ns_squared + current * current,
        longest_turn_ns=max(lane.longest_turn_ns, current),
    )


def _end_ns(lane: LaneTotals, now_ns: int) -> int:
    return now_ns if lane.closed_ns is None else lane.closed_ns


def _sum_of_known(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
