"""The frame that the user can change: where in the program's own code the time went."""

from __future__ import annotations

from collections.abc import Iterable

from loopcanary.diagnosis.code.call_sites import CallSites
from loopcanary.diagnosis.code.ownership import Owner
from loopcanary.diagnosis.code.stack_frames import Function, Path, Placed, PlacedFrame, PlacedStack
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Culprit

Weighed = tuple[PlacedStack, int]
"""A stack and the weight of its samples."""


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
    """The function's frames with the frames under them, each pair once, and the weight of the stacks."""
    in_app: bool


_FUNCTION_TIERS = {Owner.OWN: 0, Owner.OTHER: 1, Owner.INSTALLED: 2}


def _tier(function: Function) -> int | None:
    """How near a function is to the user's hand: own code first; None for what only carries others."""
    if function.owner is not Owner.OWN and function.plumbing:
        return None
    return _FUNCTION_TIERS.get(function.owner, 3)


def find_suspect(samples: Iterable[Weighed]) -> Suspect | None:
    """The innermost function of the program's own code that held at least half of the time of the
    samples with own code in them; where none did (a turn of many short callbacks), the heaviest.

    Without any own frame: likewise of the packages out of concern; else the innermost of installed
    packages, of all. None where there are only frames that carry others.
    """
    stacks: dict[PlacedStack, int] = {}
    paths: dict[Path, int] = {}
    for stack, weight in samples:
        stacks[stack] = stacks.get(stack, 0) + weight
        paths[stack.path] = paths.get(stack.path, 0) + weight
    tiers = {function: _tier(function) for function in set().union(*[path.places for path in paths])}
    tier = min((tier for tier in tiers.values() if tier is not None), default=None)
    if tier is None:
        return None
    # Of each function only the innermost frame counts: recursion is one function.
    counted = {
        path: functions
        for path in paths
        if (functions := [function for function in path.places if tiers[function] == tier])
    }
    chosen = _choose(paths, counted, innermost_only=tier > 1)
    return _gather(stacks, counted, chosen, in_app=tier == 0)


def _choose(paths: dict[Path, int], counted: dict[Path, list[Function]], *, innermost_only: bool) -> Function:
    """`innermost_only`: of foreign code only the innermost frame counts; which of its callers is to
    blame is nothing the user can change."""
    held: dict[Function, int] = {}
    depth: dict[Function, int] = {}
    for path, functions in counted.items():
        weight = paths[path]
        for function in functions[:1] if innermost_only else functions:
            held[function] = held.get(function, 0) + weight
            above = path.length - path.places[function]
            depth[function] = depth.get(function, 0) + weight * above
    total = sum([paths[path] for path in counted])
    heavy = [function for function in held if 2 * held[function] >= total]
    if heavy:
        # Of functions that each hold half, the inner is the one further from the loop on average.
        return max(heavy, key=lambda function: depth[function] / max(1, held[function]))
    return max(held, key=lambda function: held[function])


def _gather(
    stacks: dict[PlacedStack, int],
    counted: dict[Path, list[Function]],
    chosen: Function,
    *,
    in_app: bool,
) -> Suspect:
    places = {path: path.places[chosen] for path, found in counted.items() if chosen in found}
    held: dict[tuple[PlacedFrame, Placed], int] = {}
    for stack, weight in stacks.items():
        index = places.get(stack.path)
        if index is not None:
            hit = (stack.at(index), stack.below(index))
            held[hit] = held.get(hit, 0) + weight
    by_line: dict[int, int] = {}
    for (view, _), weight in held.items():
        line = view.shown.line
        by_line[line] = by_line.get(line, 0) + weight
    heaviest = max(by_line, key=by_line.__getitem__)
    view, below = max([hit for hit in held if hit[0].shown.line == heaviest], key=held.__getitem__)
    return Suspect(
        view=view,
        below=below,
        weight_ns=sum(held.values()),
        hits=tuple([(view, below, weight) for (view, below), weight in held.items()]),
        in_app=in_app,
    )


def to_culprit(suspect: Suspect, sites: CallSites) -> Culprit:
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
