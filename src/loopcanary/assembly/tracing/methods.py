"""Calls that are traced with the engine, as a tracer among others. Loaded where the settings ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.engine.calls import METHODS, CallTracer, EngineCalls
from loopcanary.model.method_map import remove_calls
from loopcanary.model.tracer_states import TracerStep
from loopcanary.tracers.life import TracerLife

if TYPE_CHECKING:
    from loopcanary.engine.canary import Canary


class SwitchedCalls(EngineCalls):
    """Those of the setting `methods`."""

    def __init__(self, tracer: CallTracer, canary: Canary) -> None:
        super().__init__(tracer, canary.boundary)
        self._canary = canary
        self._life: TracerLife | None = None

    def _start(self, file: str) -> None:
        """A life for each engine: of this process, or of a forked child."""
        steps = {TracerStep.START: lambda: self._begin_anew(file), TracerStep.STOP: self._end}
        traced = self._canary.tracing
        life = self._life = TracerLife(
            METHODS, steps, call=self._boundary.call, heard=traced.heard, part=METHODS
        )
        life.step(TracerStep.INIT)
        if METHODS not in traced.off:
            life.step(TracerStep.START)
        traced.add(life)

    def _begin_anew(self, file: str) -> None:
        """What was noted before a stop is no more: the numbers of functions begin anew."""
        remove_calls(file)
        self._begin(file)
        if (kept := self._canary.kept) is not None:
            # Now: one that starts when a call was slow may be too late to read what was called in it.
            with self._boundary("keeper"):
                kept.backend.native.ring_keeper(0.0)

    def stop(self) -> None:
        """See EngineCalls."""
        if self._life is not None:
            self._life.step(TracerStep.STOP)
