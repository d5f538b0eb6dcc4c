"""What a group's end would bring, in words."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.model.units import format_duration
from loopcanary.report.figures.loops import Gains, names
from loopcanary.words.text import printable

_GAINS_MAX = 2
_LEAST_NS = 1_000_000
"""Estimates do not tell shorter delays apart."""
_GAIN_LEAST = 0.05
"""A delay that changes by less is not worth a line."""


def gain_words(gains: Gains) -> Iterator[str]:
    """`p99 loop delay 412 ms -> 38 ms`, `at least 12 s less waiting for other callbacks`: what its end would
    bring. The waiting is estimated, and on the low side: docs/internals/report-schema.md says how."""
    shown = names(gain.loop for gain in gains.loops)
    better = [gain for gain in gains.loops if gain.p99_without_ns < (1 - _GAIN_LEAST) * gain.p99_ns]
    for gain in better[:_GAINS_MAX]:
        on = f" of {printable(shown[gain.loop], 60)}" if shown[gain.loop] else ""
        without = format_duration(gain.p99_without_ns) if gain.p99_without_ns >= _LEAST_NS else "under 1 ms"
        yield f"p99 loop delay{on} {format_duration(gain.p99_ns)} -> {without}"
    if gains.waiting_ns is not None:
        yield f"at least {format_duration(gains.waiting_ns)} less waiting for other callbacks"
