"""The part of a stack that may be blamed: of an import what led to it, not what the imported modules do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from loopcanary.diagnosis.code.ownership import Owner
from loopcanary.diagnosis.code.stack_frames import Function, Path, Placed, PlacedStack, Role
from loopcanary.diagnosis.culprit.suspect import Weighed
from loopcanary.diagnosis.samples.views import WeighedSample, weigh_stacks


def blamed_stacks(samples: Iterable[WeighedSample]) -> list[Weighed]:
    """Each distinct stack that could be read, as far as it may be blamed, with the weight of its samples."""
    return [(blamed(stack), weight) for stack, weight in weigh_stacks(samples)]


def blamed(stack: PlacedStack) -> PlacedStack:
    """The stack; of one inside an import from the frame outwards that began it."""
    if Role.IMPORT not in stack.path.roles:
        return stack
    begin = _begin(stack.work)
    frames = stack.work[begin:]
    places: dict[Function, int] = {}
    for index, view in enumerate(frames):
        places.setdefault(view.function, index)
    path = Path(length=len(frames), places=places, whole=stack.path.whole, roles=stack.path.roles)
    return replace(stack, numbers=stack.numbers[begin:], path=path)


def _begin(work: Placed) -> int:
    """Index of the frame that began the outermost import to which the program's own code led: a server that
    imports the program is not to blame for what that does. Of foreign code alone, the outermost of all."""
    begins = [
        index
        for index in range(1, len(work))
        if work[index - 1].role is Role.IMPORT and work[index].role is not Role.IMPORT
    ]
    own = [index for index, view in enumerate(work) if view.owner is Owner.OWN]
    if not own:
        return begins[-1] if begins else 0
    return max((begin for begin in begins if begin <= own[-1]), default=0)
