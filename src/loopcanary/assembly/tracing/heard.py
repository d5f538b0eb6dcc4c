"""Who hears of the steps of tracers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.registry import REGISTRY

if TYPE_CHECKING:
    from loopcanary.engine.canary import Canary
    from loopcanary.model.figures.tracers import TracerState
    from loopcanary.protocols.tracing import TracerHeard


def hearing_of(canary: Canary) -> TracerHeard:
    """Tells the program's listeners of a step, and those who look from outside."""

    def heard(name: str, state: TracerState) -> None:
        for number, listener in enumerate(list(REGISTRY.tracer_listeners), 1):
            who = getattr(listener, "__qualname__", type(listener).__qualname__)
            canary.boundary.call(f"tracer listener {number} ({who})", listener, name, state)
        canary.tracing.renew_facts()

    return heard
