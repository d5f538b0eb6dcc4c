"""What a group's end would bring, in words."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.model.units import format_duration
from loopcanary.report.figures.loops import Gains, names
from loopcanary.words.text import printable

_GAINS_MAX = 2
_LEAST_NS = 1_000_000
"""Estimates are no finer than this."""
_GAIN_LEAST = 0.05
"""A delay that changes by less is not worth a line."""


def gain_words(gains: Gains) -> Iterator[str]:
    """`p99 loop delay 412 ms -> 38 ms`, `at least 12 s less waiting for 40 other callbacks at a time`: what
    its end would bring. The waiting is estimated, and on the low side (docs/internals/report-schema.md)."""
    shown = names(gain.loop for gain in gains.loops)
    better = [
        gain
        for gain in gains.loops
        if gain.p99_ns >= _LEAST_NS and gain.p99_without_ns < (1 - _GAIN_LEAST) * gain.p99_ns
    ]
    for gain in better[:_GAINS_MAX]:
        on = f" of {printable(shown[gain.loop], 60)}" if shown[gain.loop] else ""
        without = format_duration(gain.p99_without_ns) if gain.p99_without_ns >= _LEAST_NS else "under 1 ms"
        yield f"p99 loop delay{on} {format_duration(gain.p99_ns)} -> {without}"
    if gains.waiting_ns is not None and gains.waiting_ns >= _LEAST_NS:
        at_a_time = round(gains.waiting_ns / gains.ended_ns) if gains.ended_ns else 0
        # Their sum may be a multiple of the run's length, which is not believable.
        if at_a_time > 1:
            less, others = gains.ended_ns, f"{at_a_time:,} other callbacks at a time"
        else:
            less, others = gains.waiting_ns, "other callbacks"
        yield f"at least {format_duration(less)} less waiting for {others}"
