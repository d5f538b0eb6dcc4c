"""What reports ask the diagnosis about stalls that were judged long ago."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from loopcanary.diagnosis.code.ownership import CodePaths, captured
from loopcanary.diagnosis.fingerprint import explain, fingerprint
from loopcanary.diagnosis.health import Cut, delay_shares, delay_without
from loopcanary.model import Issue, LoopHealth, Stall
from loopcanary.protocols.kinds import kind_of
from loopcanary.source_text import FileSources, SourceLines


def why_grouped(issue: Issue, stalls: Sequence[Stall]) -> tuple[str, ...]:
    """What an issue's fingerprint was made of, each part as `name=value`; empty where that is not known."""
    if isinstance(issue, Stall):
        return _stall_parts(issue)
    return kind_of(issue).grouped(issue, stalls)


def _stall_parts(stall: Stall) -> tuple[str, ...]:
    """What the fingerprint of a stall was made of; empty where that is not known.

    The folders of its process, to which a fingerprint's files are relative, are not stored. So each that
    they may have been is tried, and the fingerprint proves the right one."""
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


def delays(loops: Sequence[LoopHealth]) -> Callable[[Sequence[Cut]], int | None]:
    """A function from stalls of these loops to the p99 delay that they would have had together with those
    shortened; it gives None where their histograms are not known."""
    known = [loop for loop in loops if loop.histogram and loop.window_ns > 0]
    if not known:
        return lambda _: None
    together = _together(known)
    return lambda cuts: delay_without(together, cuts)


def longer(loop: LoopHealth, times_ns: Sequence[int]) -> Sequence[float]:
    """For each of these times, the share of events, arriving at random moments, that wait longer than it.
    Empty if the loop's histogram is not known."""
    return delay_shares(loop, times_ns) if loop.histogram and loop.window_ns > 0 else ()


def _together(loops: Sequence[LoopHealth]) -> LoopHealth:
    """One loop that did what all of them did, one after the other; only of what delays are made of."""
    window_ns = sum(loop.window_ns for loop in loops)
    histogram: Counter[int] = Counter()
    for loop in loops:
        for upper_ns, turns in loop.histogram:
            histogram[upper_ns] += turns
    return replace(
        loops[0],
        window_ns=window_ns,
        delay_max_ns=max(loop.delay_max_ns for loop in loops),
        delay_mean_ns=sum(loop.delay_mean_ns * loop.window_ns for loop in loops) // window_ns,
        histogram=tuple(sorted(histogram.items())),
    )


def source_reader() -> Callable[[str], SourceLines | None]:
    """A function from a file's name to its source as it is now; None where there is none."""
    return FileSources().read
