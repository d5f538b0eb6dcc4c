"""Stacks with their repetitions taken together: deep recursion is one line, however deep."""

from __future__ import annotations

from collections.abc import Sequence

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Frame

_PERIOD_MAX = 6
_LEAST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """The `period` frames before it, `times` more in a row."""

    period: int
    times: int


def rows(frames: Sequence[Frame]) -> list[Frame | Again]:
    """The frames; where a few functions follow each other again and again, only their first turn is shown."""
    keys = [(frame.file, frame.qualname) for frame in frames]
    found: list[Frame | Again] = []
    at = 0
    while at < len(frames):
        period, turns = _repetition(keys, at)
        if turns < _LEAST:
            found.append(frames[at])
            at += 1
            continue
        found += [*frames[at : at + period], Again(period=period, times=turns - 1)]
        at += period * turns
    return found


def _repetition(keys: Sequence[tuple[str, str]], at: int) -> tuple[int, int]:
    """(period, turns) of the repetition that covers most from there; the shortest period of equals."""
    best = (1, 1)
    for period in range(1, _PERIOD_MAX + 1):
        turns = 1
        first = keys[at : at + period]
        while keys[at + turns * period : at + (turns + 1) * period] == first:
            turns += 1
        if turns >= _LEAST and period * turns > best[0] * best[1]:
            best = (period, turns)
    return best
