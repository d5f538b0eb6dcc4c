"""The tracers of one start of the engine that work in the program: third parties', and those of locks and
windows. Each fails alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from loopcanary.model.tracer_states import TracerStep
from loopcanary.protocols.plugins import Tracer, counts_of
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
        apart: Callable[[object, str, Callable[[], Any]], Any] | None = None,
        heard: TracerHeard | None = None,
        starts: bool = True,
    ) -> None:
        """`apart` calls its steps (engine.apart.Apart.called); None: it is ours. `starts`: with the engine;
        else when it is asked to."""
        self._tracer = tracer
        self.desk = desk
        self._failed = failed
        self._call = call
        self._apart = apart
        self._starts = starts
        steps = {
            TracerStep.INIT: lambda: tracer.init(desk),
            TracerStep.START: self._begin,
            TracerStep.STOP: self._end,
            TracerStep.DESTROY: getattr(tracer, "destroy", _nothing),
        }
        self.life = TracerLife(desk.name, steps, call=self._called, heard=heard)
        desk.when_failed = self._has_failed

    def start(self) -> None:
        if self.life.step(TracerStep.INIT) is None and self._starts:
            self.life.step(TracerStep.START)

    def stop(self) -> None:
        """Records no more. Any thread, any number of times."""
        self.life.end()
        self.desk.close()

    def destroy(self) -> None:
        """Called when the engine has ended, and has taken all that the tracer reported."""
        self.life.step(TracerStep.DESTROY)

    def forget(self) -> None:
        """Takes back, in a forked child, what the tracer has put into the program."""
        self.life.is_forked()
        self.desk.forget()
        self._apart = None  # no thread is made in the middle of a fork
        self.stop()

    def counts(self) -> dict[str, int]:
        """Counts of what the tracer reported, and its own counts."""
        part = f"tracer {self.desk.name}: counts"
        own = self._call(part, lambda: self._counted(part)) or {}
        return self.desk.counts() | {f"tracer_{self.desk.name}_{what}": count for what, count in own.items()}

    def _counted(self, part: str) -> dict[str, int]:
        counts, apart = getattr(self._tracer, "counts", dict), self._apart
        return counts_of(counts if apart is None else lambda: apart(None, part, counts))

    def _called(self, part: str, step: Callable[[], Any], /, *, keep: bool = False) -> Any:
        """See life.Call. A stop may come on any thread: it is always bounded."""
        if self._apart is None:
            return self._call(part, step, keep=keep)
        apart, whose = self._apart, None if keep else self._tracer
        done = self._call(part, lambda: apart(whose, part, step), keep=keep)
        if not done:
            self.desk.close()  # what it reports later is not taken
        return done

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
        for tracer in self._tracers:
            tracer.start()

    def stop(self) -> None:
        """Stops the tracers, the last one first."""
        for tracer in reversed(self._tracers):
            tracer.stop()

    def close(self) -> None:
        """Ends the tracers: all their reports were taken."""
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
