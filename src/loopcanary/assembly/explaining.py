"""What reports ask the diagnosis about stalls that were judged long ago."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from loopcanary.diagnosis.codepaths import CodePaths, captured
from loopcanary.diagnosis.fingerprint import explain, fingerprint
from loopcanary.diagnosis.health import delay_quantile, estimate_turns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loopcanary.model import LoopHealth, Stall

_QUANTILE = 0.99
_BUCKET = 1 / 16
"""Width of a bucket: an estimated turn may be so much shorter than it was."""


def why_grouped(stall: Stall) -> tuple[str, ...]:
    """What the stall's fingerprint was made of, each part as `name=value`; empty where that is not known.

    The folders of its process, to which a fingerprint's files are relative, are not stored. So each that they
    may have been is tried, and the fingerprint proves the right one.
    """
    for paths in _possible_paths(stall):
        if fingerprint(stall, paths) == stall.fingerprint:
            return explain(stall, paths)
    return ()


def _possible_paths(stall: Stall) -> Iterator[CodePaths]:
    yield CodePaths()
    yield captured()
    found = [stall.culprit, *([stall.holder.culprit] if stall.holder is not None else [])]
    for file in dict.fromkeys(culprit.file for culprit in found if culprit is not None):
        folder = file.rpartition("/")[0]
        while folder:
            yield CodePaths(roots=(folder,))
            folder = folder.rpartition("/")[0]


def delay_without(loops: Sequence[LoopHealth], stalls_ns: Sequence[int]) -> int | None:
    """The p99 loop delay of these loops together, were there not these stalls; None where their histograms
    are not known."""
    known = [loop for loop in loops if loop.histogram and loop.window_ns > 0]
    if not known:
        return None
    window_ns = sum(loop.window_ns for loop in known)
    longest_ns = max(loop.delay_max_ns for loop in known)
    histogram: Counter[int] = Counter()
    for loop in known:
        histogram.update(dict(loop.histogram))
    squares = sum(2 * loop.delay_mean_ns * loop.window_ns for loop in known)
    turns = estimate_turns(sorted(histogram.items()), squares, longest_ns)
    return delay_quantile(_left(turns, stalls_ns), window_ns, _QUANTILE, longest_ns)


def _left(turns: Sequence[tuple[float, int]], stalls_ns: Sequence[int]) -> list[tuple[float, int]]:
    """The turns with the stalls taken out of them: each out of the shortest turn that can have held it, which
    keeps what it lasted longer. A stall for which there is none takes nothing."""
    ascending = sorted(turns)
    left: list[tuple[float, int]] = []
    index, free = 0, ascending[0][1] if ascending else 0
    for stall_ns in sorted(stalls_ns):
        while index < len(ascending) and (not free or ascending[index][0] < stall_ns * (1 - _BUCKET)):
            left.append((ascending[index][0], free))
            index += 1
            free = ascending[index][1] if index < len(ascending) else 0
        if index == len(ascending):
            break
        free -= 1
        left.append((max(ascending[index][0] - stall_ns, 0.0), 1))
    if index < len(ascending):
        left += [(ascending[index][0], free), *ascending[index + 1 :]]
    return [(duration, count) for duration, count in left if count and duration > 0]
