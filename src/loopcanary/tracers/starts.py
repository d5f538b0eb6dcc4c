"""Starts that a tracer reported: cut to size and completed, and what makes two of them the same bug."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary.model.call_tree import heaviest
from loopcanary.model.issues.startup import PHASES_MAX, PhaseKind
from loopcanary.model.stall import Cause
from loopcanary.tracers.reported import TEXT_MAX, refuse_negative

if TYPE_CHECKING:
    from loopcanary.model import Session, Startup

_LONGEST_NS = 1 << 62


def fitted(start: Startup, session: Session) -> Startup:
    """The start with its longest phases, its program, and imports as its cause where these took most of it.
    ValueError: a depth is less than 0."""
    refuse_negative(depth=(phase.depth for phase in start.phases))
    start = replace(shortened(start, PHASES_MAX), program=session.name[:TEXT_MAX])
    imports = sum(phase.self_ns for phase in start.phases if phase.kind is PhaseKind.IMPORT)
    if start.cause is Cause.UNKNOWN and imports * 2 >= start.duration_ns > 0:
        start = replace(start, cause=Cause.IMPORT)
    return start


def shortened(start: Startup, most: int) -> Startup:
    """The start with its longest phases, so many of them; those that had not ended come first."""
    phases = start.phases
    kept = heaviest(
        phases,
        most,
        depth=lambda phase: phase.depth,
        weight=lambda phase: phase.duration_ns + (_LONGEST_NS if phase.open else 0),
    )
    left_out = start.left_out + len(phases) - len(kept)
    return replace(start, phases=tuple(phases[index] for index in kept), left_out=left_out)


def identity(start: Startup) -> tuple[str, ...]:
    """What its fingerprint is made of. Starts within their limit are no instance of the bug that those over
    it are."""
    return (f"start={start.start.value}", f"program={start.program}")
