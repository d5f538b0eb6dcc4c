"""What probes report beside stalls: frames, input and idle work."""

from __future__ import annotations

import _thread
import time

from loopcanary.registry import REGISTRY

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from loopcanary.engine import Boundary
    from loopcanary.engine.parts import EngineParts
    from loopcanary.model import TraceFigures
    from loopcanary.model.tracer_states import TracerState
    from loopcanary.protocols.tracing import TracerSteps, Traces

TRACERS = "tracers"
"""Key of the facts: what each tracer of the process does."""

_WORDS_MAX = 200
"""Of why one has failed: all facts have to have room in the flight file."""


class EngineTraces:
    """The traces of one canary. Its methods are called under the GIL; only `use` on any thread."""

    def __init__(self, boundary: Boundary) -> None:
        self.traces: Traces | None = None
        """None until a probe reports frames, input or idle work."""
        self.making = _thread.RLock()
        """Held by who makes them: the drain may, and threads of the program."""
        self.before_figures: Callable[[], object] = _nothing
        """Called before the traces are asked for what they know: the moment to make them."""
        self.lives: dict[str, TracerSteps] = {}
        """Of the tracers of this process, by name, in the order in which they were made."""
        self.off: set[str] = set()
        """Names of those that were stopped while the engine ran: what is made anew is not started either."""
        self.renew_facts: Callable[[], object] = _nothing
        """Has the flight file say what has changed; set while the engine runs."""
        self._boundary = boundary
        self._begins: Callable[[Traces], object] | None = None

    def use(self, traces: Traces) -> None:
        """Adds the traces, for the first probe that reports to them."""
        self.traces = traces
        self._begin()

    def add(self, life: TracerSteps) -> None:
        """A tracer has been made."""
        self.lives[life.name] = life
        self.renew_facts()

    def heard(self, name: str, state: TracerState) -> None:
        """A tracer has made a step: tells the program's listeners, and those who look from outside."""
        for number, listener in enumerate(list(REGISTRY.tracer_listeners), 1):
            who = getattr(listener, "__qualname__", type(listener).__qualname__)
            with self._boundary.until_failure(f"tracer listener {number} ({who})") as is_on:
                if is_on:
                    listener(name, state)
        self.renew_facts()

    def facts(self) -> dict[str, Any]:
        """The facts of the tracers, each as a model.TracerStatus on the wire; empty if there are no
        tracers."""
        reasons = self._boundary.reasons()
        told = [
            {
                "name": life.name,
                "state": life.state.value,
                "failed": reasons.get(life.part, "")[:_WORDS_MAX] if life.has_failed else None,
                "steps_ms": life.steps_ns / 1_000_000,
            }
            for life in list(self.lives.values())
        ]
        return {TRACERS: told} if told else {}

    def engine_runs(self, begins: Callable[[Traces], object] | None) -> None:
        """`begins` gets the traces, now or once there are some; None: the engine runs no more."""
        self._begins = begins
        self._begin()

    def tells(self, renew_facts: Callable[[], object] | None) -> None:
        """The flight file is to say what the tracers do; None: no more, as the engine is about to end."""
        self.renew_facts = renew_facts or _nothing
        if self.lives:
            self.renew_facts()

    def _begin(self) -> None:
        if self.traces is not None and self._begins is not None:
            with self._boundary("tracers"):
                self._begins(self.traces)

    def patience_s(self) -> float | None:
        """When `store` will have something; None: not before the engine is woken."""
        return None if self.traces is None else self.traces.patience_s(time.monotonic_ns())

    def store(self, parts: EngineParts, *, is_last: bool = False) -> bool:
        """Gives issues and figures to the pipeline and the store; False where there was nothing. Drain
        thread."""
        self.before_figures()
        traces = self.traces
        if traces is None:
            return False
        traces.begin(parts.session, parts.clock)
        issues = traces.take(time.monotonic_ns(), parts.pipeline.recent, is_last=is_last)
        for issue in issues:
            parts.pipeline.store_issue(issue)
        news = traces.news()
        if news is not None:
            with self._boundary("store") as is_on:
                if is_on:
                    parts.sink.put_traces(parts.session.id, news)
        return bool(issues) or news is not None

    def end(self, parts: EngineParts) -> TraceFigures | None:
        """Stores the last issues; the figures as they end. Drain thread."""
        self.before_figures()
        if self.traces is None:
            return None
        self.traces.end()
        self.store(parts, is_last=True)
        return self.traces.close()

    def end_noting(self) -> int:
        """Ends the notes for a keeper, as the engine ends. Returns how many of them become issues."""
        self._begins = None
        with self._boundary("tracers"):
            return 0 if self.traces is None else self.traces.end_notes()
        return 0

    def figures(self) -> dict[str, Any]:
        """The figures now, as reports have them."""
        from loopcanary.wire import to_wire

        self.before_figures()
        with self.making:  # what is made at this moment knows nothing yet
            traces = self.traces
        return {} if traces is None else to_wire(traces.figures())

    def forget(self) -> None:
        """In a forked child: what was traced is the parent's."""
        self._begins = None
        self.renew_facts = _nothing
        for life in self.lives.values():
            life.is_forked()
        self.lives = {}
        self.making = _thread.RLock()
        if self.traces is not None:
            self.traces.forget()


def _nothing() -> None:
    """There is nothing to make."""
