"""How much of a bug's stalls would end with the bug."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary.model import Cause, Culprit, Stall
from loopcanary.model.search import IssueQuery, of_type

if TYPE_CHECKING:
    from loopcanary.protocols.stores import IssueStore

_EXAMINED = 20
"""So many stalls of a bug, the latest, speak for all of them."""
_OF_NO_ONE_LINE = frozenset({Cause.CPU, Cause.BURST, Cause.HOST, Cause.GC, Cause.UNKNOWN})


def own_share(source: IssueStore, query: IssueQuery, fingerprint: str) -> float:
    """The part of the time of a bug's stalls that its own line took, 0 to 1, from the latest of them."""
    found = of_type(Stall, source.issues(replace(query.stalls, fingerprint=fingerprint), _EXAMINED))
    whole_ns = sum(stall.duration_ns for stall in found)
    return sum(stall.duration_ns * own_part(stall) for stall in found) / whole_ns if whole_ns else 1.0


def own_part(stall: Stall) -> float:
    """The part of a stall that would end with its bug, 0 to 1."""
    if stall.blamed_holder is not None:
        holders = stall.holders or (stall.blamed_holder,)
        return min(1.0, sum(one.share for one in holders if _is_at(one.culprit, stall.blamed)))
    part = _part_of_portions(stall)
    # Code that computes goes from line to line; a call that blocks is one line's.
    return part if stall.cause in _OF_NO_ONE_LINE else min(part, _part_through_line(stall))


def _part_of_portions(stall: Stall) -> float:
    if not stall.portions:
        return stall.cause_share
    struck = [one.share for one in stall.portions if one.cause is stall.cause and one.culprit is None]
    own = struck or [one.share for one in stall.portions if _is_at(one.culprit, stall.culprit)]
    # A function that called those of all parts has the line of the largest.
    return min(1.0, sum(own)) if own else stall.portions[0].share


def _part_through_line(stall: Stall) -> float:
    """Of the time of its stacks, that of those which have the culprit's line; 1 where none has."""
    at = stall.culprit and (stall.culprit.file, stall.culprit.line)
    through = [
        stack.weight_ns
        for stack in stall.stacks
        if any((frame.file, frame.line) == at for frame in stack.frames)
    ]
    return sum(through) / sum(stack.weight_ns for stack in stall.stacks) if sum(through) else 1.0


def _is_at(culprit: Culprit | None, other: Culprit | None) -> bool:
    """Whether both are one line."""
    return (
        culprit is not None and other is not None and (culprit.file, culprit.line) == (other.file, other.line)
    )
