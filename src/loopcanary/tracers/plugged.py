"""The tracers of one start of the engine that work in the program: third parties', and those of locks and
windows. Each fails alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from loopcanary.model.figures.tracers import TracerStep
from loopcanary.protocols.plugins import Tracer
from loopcanary.tracers.desk import TracerDesk
from loopcanary.tracers.life import Call, TracerLife

if TYPE_CHECKING:
    from loopcanary.protocols.tracing import TracerHeard


class PluggedTracer:
    """One tracer with its desk."""

    def __init__(
        self,
        tracer: Tracer,
        desk: TracerDesk,
        *,
        call: Call,
        failed: Callable[[str, Exception], object],
        heard: TracerHeard | None = None,
        starts: bool = True,
    ) -> None:
        """`starts`: with the engine; else when it is asked to."""
        self._tracer = tracer
        self.desk = desk
        self._failed = failed
        self._call = call
        self._starts = starts
        steps = {
            TracerStep.INIT: lambda: tracer.init(desk),
            TracerStep.START: self._begin,
            TracerStep.STOP: self._end,
            TracerStep.DESTROY: getattr(tracer, "destroy", _nothing),
        }
        self.life = TracerLife(desk.name, steps, call=call, heard=heard)
        desk.when_failed = self._has_failed

    def start(self) -> None:
        """Begins to record. The thread that starts the engine."""
        if self.life.step(TracerStep.INIT) is None and self._starts:
            self.life.step(TracerStep.START)

    def stop(self) -> None:
        """Records no more. Any thread, any number of times."""
        self.life.end()
        self.desk.close()

    def destroy(self) -> None:
        """The engine has ended, and has taken all that the tracer reported."""
        self.life.step(TracerStep.DESTROY)

    def forget(self) -> None:
        """In a forked child: what it has put into the program is taken back."""
        self.life.is_forked()
        self.desk.forget()
        self.stop()

    def counts(self) -> dict[str, int]:
        """Of what it reported, and its own."""
        counts = getattr(self._tracer, "counts", dict)
        own = self._call(f"tracer {self.desk.name}: counts", counts, keep=True) or {}
        return self.desk.counts() | {f"tracer_{self.desk.name}_{what}": count for what, count in own.items()}

    def _begin(self) -> None:
        self.desk.open()
        self._tracer.start()

    def _end(self) -> None:
        """What it reports meanwhile is taken, unless it has failed."""
        if self.life.has_failed:
            self.desk.close()
        try:
            self._tracer.stop()
        finally:
            self.desk.close()

    def _has_failed(self, error: Exception) -> None:
        self._failed(self.life.part, error)
        self.life.fail()


class PluggedTracers:
    """All of one start of the engine."""

    def __init__(
        self, tracers: Sequence[PluggedTracer] = (), leave: Callable[[list[TracerDesk]], object] | None = None
    ) -> None:
        """`leave` gets desks that have no reporter any more."""
        self._tracers = tuple(tracers)
        self._leave = leave

    def start(self) -> None:
        """In order."""
        for tracer in self._tracers:
            tracer.start()

    def stop(self) -> None:
        """The last one first."""
        for tracer in reversed(self._tracers):
            tracer.stop()

    def close(self) -> None:
        """All their reports were taken."""
        if self._leave is not None:
            self._leave([tracer.desk for tracer in self._tracers])
        for tracer in reversed(self._tracers):
            tracer.destroy()

    def forget(self) -> None:
        """In a forked child."""
        for tracer in reversed(self._tracers):
            tracer.forget()

    def counts(self) -> dict[str, int]:
        """By `tracer_`, the tracer's name and what was counted; what is 0 is left out."""
        return {name: count for tracer in self._tracers for name, count in tracer.counts().items() if count}


def _nothing() -> None:
    """Most have nothing to destroy."""
