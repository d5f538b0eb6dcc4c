"""Tracers of this process that are started and stopped while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.engine.calls import METHODS
from loopcanary.engine.traced import TRACERS
from loopcanary.model.tracer_states import TracerStatus, TracerStep
from loopcanary.tracers.life import refusal
from loopcanary.wire import from_wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopcanary.engine.canary import Canary


def statuses(canary: Canary) -> tuple[TracerStatus, ...]:
    """The states of all tracers that were made, in the order in which they were made."""
    return tuple(from_wire(TracerStatus, one) for one in canary.tracing.facts().get(TRACERS, ()))


def make_step(canary: Canary, step: TracerStep, names: Sequence[str]) -> dict[str, str]:
    """Starts or stops these; without names, all that can be. Why each that is not is not, by name."""
    lives = canary.tracing.lives
    wanted = names
    if not names:
        wanted = [name for name, life in list(lives.items()) if refusal(life.state, step) is None]
        if step is TracerStep.STOP:
            wanted.reverse()  # the last one first, as at the end
    refused = {}
    for name in wanted:
        why_not = _obstacle(canary, name) or lives[name].step(step)
        if why_not is not None:
            refused[name] = why_not
        elif step is TracerStep.STOP:
            canary.tracing.off.add(name)
        else:
            canary.tracing.off.discard(name)
    return refused


def _obstacle(canary: Canary, name: str) -> str | None:
    if name not in canary.tracing.lives:
        known = ", ".join(list(canary.tracing.lives))
        return f"there is no such tracer here{known and f', but {known}'}"
    is_asked = name == METHODS and canary.calls is not None and canary.calls.is_asked
    return "calls are traced for `loopcanary methods` now" if is_asked else None
