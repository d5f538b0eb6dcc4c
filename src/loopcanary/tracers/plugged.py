"""The lives of third parties' tracers: init, start, stop. Each fails alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from loopcanary.protocols.plugins import Tracer
from loopcanary.tracers.desk import TracerDesk
from loopcanary.unpatched import unpatched


class Call(Protocol):
    """See engine.Boundary.call."""

    def __call__(self, part: str, function: Callable[..., Any], /, *args: Any, keep: bool = False) -> Any:
        """What the function returns; None where it raises, or the part is switched off."""


class PluggedTracer:
    """One tracer with its desk."""

    def __init__(
        self,
        tracer: Tracer,
        desk: TracerDesk,
        *,
        call: Call,
        failed: Callable[[str, Exception], object],
    ) -> None:
        self._tracer = tracer
        self.desk = desk
        self._part = f"tracer {desk.name}"
        self._call = call
        self._failed = failed
        self._once = _new_lock()
        self._is_on = False
        desk.when_failed = self._has_failed

    def start(self) -> None:
        """Begins to record. The thread that starts the engine."""
        self._is_on = True
        for step in (lambda: self._tracer.init(self.desk), self._tracer.start):
            if self._is_on and self._call(self._part, _said_so(step)) is None:
                self.desk.close()
                self.stop()

    def stop(self) -> None:
        """Records no more. Any thread, any number of times."""
        # Taken once and never given back: a second caller, a signal handler too, does not wait for it.
        if self._is_on and self._once.acquire(blocking=False):
            self._is_on = False
            self._call(f"end of {self._part}", self._tracer.stop, keep=True)
        self.desk.close()

    def destroy(self) -> None:
        """The engine has ended, and has taken all that the tracer reported."""
        destroy = getattr(self._tracer, "destroy", None)
        if destroy is not None:
            self._call(f"end of {self._part}", destroy, keep=True)

    def forget(self) -> None:
        """In a forked child: what it has put into the program is taken back."""
        self._once = _new_lock()
        self.desk.forget()
        self.stop()

    def _has_failed(self, error: Exception) -> None:
        self._failed(self._part, error)
        self.stop()


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
        return {name: count for tracer in self._tracers for name, count in tracer.desk.counts().items()}


def _said_so(step: Callable[[], object]) -> Callable[[], bool]:
    def run() -> bool:
        step()
        return True

    return run


def _new_lock() -> Any:
    """One that gevent does not make cooperative."""
    return unpatched("_thread", "allocate_lock")()
