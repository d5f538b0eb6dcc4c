"""The figures of a process: of each loop, and of each pool of threads as one.

A server that starts a thread for each request has thousands; figures of single ones are of no use.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from loopcanary.diagnosis.health.loop import loop_health
from loopcanary.model import LaneTotals, LoopHealth

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
    """As if it ended now; what goes on counts with what it has lasted so far."""
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
