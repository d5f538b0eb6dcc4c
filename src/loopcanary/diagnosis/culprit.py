"""The frame that the user can change: where in the program's own code the time went."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loopcanary.diagnosis.calls import CallSites
from loopcanary.diagnosis.frames import Placed, PlacedFrame
from loopcanary.diagnosis.ownership import Owner
from loopcanary.model import Culprit

Weighed = tuple[Placed, int]
"""A sample's frames of the work, innermost first, and its weight."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Suspect:
    """The culprit's function with the samples that speak for it."""

    view: PlacedFrame
    """The heaviest frame on the heaviest line."""
    below: Placed
    """The frames under it in the heaviest sample there, innermost first."""
    weight_ns: int
    """Of all samples with the function on the stack."""
    hits: tuple[tuple[PlacedFrame, Placed, int], ...]
    """Each sample's frame of the function, the frames under it, and the weight."""
    in_app: bool


Chain = tuple[Placed, list[int], int]
"""A sample's frames, the indexes of those that count, innermost first, and its weight."""


def _tier(view: PlacedFrame) -> int | None:
    """How near a frame is to the user's hand: own code first; None for what only carries others."""
    if view.owner is Owner.OWN:
        return 0
    if view.plumbing:
        return None
    return {Owner.OTHER: 1, Owner.INSTALLED: 2}.get(view.owner, 3)


def find_suspect(samples: Iterable[Weighed]) -> Suspect | None:
    """The innermost function of the program's own code that held at least half of the time of the
    samples with own code in them; where none did (a turn of many short callbacks), the heaviest.

    Without any own frame: likewise of the packages out of concern; else the innermost of installed
    packages, of all. None where there are only frames that carry others.
    """
    merged: dict[Placed, int] = {}
    for placed, weight in samples:
        merged[placed] = merged.get(placed, 0) + weight
    tiers = {view: _tier(view) for view in set().union(*merged)}
    for tier in sorted({tier for tier in tiers.values() if tier is not None}):
        chains = [
            (placed, indexes, weight)
            for placed, weight in merged.items()
            if (indexes := [index for index, view in enumerate(placed) if tiers[view] == tier])
        ]
        if chains:
            return _choose(chains, in_app=tier == 0, innermost_only=tier > 1)
    return None


def _fold(placed: Placed, indexes: list[int]) -> list[int]:
    """Of each function only the innermost frame: recursion is one function."""
    seen: set[tuple[str, str]] = set()
    folded: list[int] = []
    for index in indexes:
        function = placed[index].function
        if function not in seen:
            seen.add(function)
            folded.append(index)
    return folded


def _choose(chains: list[tuple[Placed, list[int], int]], *, in_app: bool, innermost_only: bool) -> Suspect:
    """`innermost_only`: of foreign code only the innermost frame counts; which of its callers is to
    blame is nothing the user can change."""
    chains = [(placed, _fold(placed, indexes), weight) for placed, indexes, weight in chains]
    total = sum(weight for _, _, weight in chains)
    held: dict[tuple[str, str], int] = {}
    depth: dict[tuple[str, str], int] = {}
    for placed, indexes, weight in chains:
        for index in indexes[:1] if innermost_only else indexes:
            function = placed[index].function
            held[function] = held.get(function, 0) + weight
            depth[function] = depth.get(function, 0) + weight * (len(placed) - index)
    heavy = [function for function in held if 2 * held[function] >= total]
    if heavy:
        # Of functions that each hold half, the inner is the one further from the loop on average.
        chosen = max(heavy, key=lambda function: depth[function] / max(1, held[function]))
    else:
        chosen = max(held, key=lambda function: held[function])
    return _gather(chains, chosen, in_app=in_app)


def _gather(chains: list[tuple[Placed, list[int], int]], chosen: tuple[str, str], *, in_app: bool) -> Suspect:
    hits = tuple(
        (placed[index], placed[:index], weight)
        for placed, indexes, weight in chains
        for index in indexes
        if placed[index].function == chosen
    )
    by_line: dict[int, int] = {}
    for view, _, weight in hits:
        by_line[view.shown.line] = by_line.get(view.shown.line, 0) + weight
    line = max(by_line, key=lambda number: by_line[number])
    by_view: dict[tuple[PlacedFrame, Placed], int] = {}
    for view, below, weight in hits:
        if view.shown.line == line:
            by_view[view, below] = by_view.get((view, below), 0) + weight
    view, below = max(by_view, key=lambda key: by_view[key])
    return Suspect(view=view, below=below, weight_ns=sum(hit[2] for hit in hits), hits=hits, in_app=in_app)


def to_culprit(suspect: Suspect, sites: CallSites) -> Culprit:
    """The suspect as reports show it."""
    shown = suspect.view.shown
    site = sites.of(suspect.view)
    return Culprit(
        function=shown.function,
        qualname=shown.qualname,
        file=shown.file,
        line=shown.line,
        source=site.source,
        in_app=suspect.in_app,
        column=site.column,
        end_column=site.end_column,
    )
