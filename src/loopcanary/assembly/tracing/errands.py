"""What `loopcanary tracers` has a watched program do: tracers are started and stopped. An errand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopcanary.assembly.tracing.steps import make_step
from loopcanary.engine.traced import TRACERS
from loopcanary.model.figures.tracers import TracerStep

if TYPE_CHECKING:
    from loopcanary.engine.canary import Canary

STEPS = (TracerStep.STOP, TracerStep.START)
ALL = "all"
"""In place of a name."""
REFUSED = "refused"
"""Key of the answer: why each that makes no step does not, by name."""


def is_one(errand: dict[str, Any]) -> bool:
    """Whether it is about this, and whole."""
    wanted = errand.get(TRACERS)
    return isinstance(wanted, dict) and all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in wanted.values()
    )


def run(canary: Canary, errand: dict[str, Any]) -> dict[str, Any]:
    """Makes the steps; the answer."""
    refused: dict[str, str] = {}
    for step in STEPS:
        if names := errand[TRACERS].get(step.value):
            refused |= make_step(canary, step, [] if ALL in names else names)
    return {REFUSED: refused, **canary.tracing.facts()}
