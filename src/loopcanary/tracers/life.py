"""The life of a tracer: which step may follow which, and how a step is made.

As Matrix's plugins: created, inited, started, stopped, destroyed; started again after a stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from loopcanary.model.figures.tracers import TracerState, TracerStep
from loopcanary.unpatched import unpatched

if TYPE_CHECKING:
    from loopcanary.protocols.tracing import TracerHeard

_COMES_TO = {
    TracerStep.INIT: TracerState.INITED,
    TracerStep.START: TracerState.STARTED,
    TracerStep.STOP: TracerState.STOPPED,
    TracerStep.DESTROY: TracerState.DESTROYED,
}


def refusal(state: TracerState, step: TracerStep) -> str | None:
    """Why a tracer in this state cannot make the step; None: it can."""
    if state is TracerState.DESTROYED:
        return "it is destroyed"
    if step is TracerStep.INIT and state is not TracerState.CREATED:
        return "it is inited already"
    if step is TracerStep.START and state is TracerState.CREATED:
        return "it is not inited"
    if step is TracerStep.START and state is TracerState.STARTED:
        return "it is started already"
    if step is TracerStep.STOP and state is not TracerState.STARTED:
        return "it is not started"
    return None


def steps_of(state: TracerState, step: TracerStep) -> Sequence[TracerStep]:
    """What is called for it, in order: what is destroyed is stopped first."""
    is_on = step is TracerStep.DESTROY and state is TracerState.STARTED
    return (TracerStep.STOP, TracerStep.DESTROY) if is_on else (step,)


class Call(Protocol):
    """See engine.Boundary.call."""

    def __call__(self, part: str, function: Callable[..., Any], /, *args: Any, keep: bool = False) -> Any:
        """What the function returns; None where it raises, or the part is switched off."""


class TracerLife:
    """One tracer's steps. Any thread, signal handlers too: nothing is raised, nothing is waited for."""

    def __init__(
        self,
        name: str,
        steps: Mapping[TracerStep, Callable[[], object]],
        *,
        call: Call,
        heard: TracerHeard | None = None,
        part: str | None = None,
    ) -> None:
        """`part`: its name at the boundary; None: `tracer NAME`."""
        self.name = name
        self.part = part or f"tracer {name}"
        self.state = TracerState.CREATED
        self.has_failed = False
        self.steps_ns = 0
        self._steps = steps
        self._call = call
        self._heard = heard or _unheard
        self._turn = _new_lock()
        self._is_over = False

    def step(self, step: TracerStep) -> str | None:
        """Makes it; or says why it is not made."""
        # Tried and not waited for: this may be a signal handler in the middle of a step.
        if not self._turn.acquire(blocking=False):
            return "another step is being made"
        told: list[TracerState] = []
        try:
            why_not = self._refusal(step)
            for each in () if why_not else steps_of(self.state, step):
                self._make(each, told)
            if step in (TracerStep.INIT, TracerStep.START) and self.has_failed:
                why_not = _FAILED
        finally:
            self._turn.release()
        self._tell(told)
        self._settle()
        return why_not

    def end(self) -> None:
        """Stops it for good, in the middle of a step too: who makes that one stops it then."""
        self._is_over = True
        self._settle()

    def fail(self) -> None:
        """It has said itself that it failed."""
        self.has_failed = True
        self.end()

    def is_forked(self) -> None:
        """In a forked child: who made a step, or is waited for by a listener, may not be there."""
        self._turn = _new_lock()
        self._heard = _unheard

    def _refusal(self, step: TracerStep) -> str | None:
        if step in (TracerStep.INIT, TracerStep.START) and (self.has_failed or self._is_over):
            return _FAILED if self.has_failed else "the engine ends"
        return refusal(self.state, step)

    def _settle(self) -> None:
        while self._owes_stop() and self._turn.acquire(blocking=False):
            told: list[TracerState] = []
            try:
                if self._owes_stop():
                    self._make(TracerStep.STOP, told)
            finally:
                self._turn.release()
            self._tell(told)

    def _owes_stop(self) -> bool:
        return self._is_over and self.state in (TracerState.INITED, TracerState.STARTED)

    def _make(self, step: TracerStep, told: list[TracerState]) -> None:
        """Its turn. One that fails to begin is stopped, and made no more."""
        self.state = _COMES_TO[step]  # before the call: it may not come back
        begins = step in (TracerStep.INIT, TracerStep.START)
        began_ns = time.monotonic_ns()
        part = self.part if begins else f"end of {self.part}"
        is_done = self._call(part, _done(self._steps.get(step, _nothing)), keep=not begins)
        self.steps_ns += time.monotonic_ns() - began_ns
        if begins and not is_done:
            self.has_failed = True
            self._make(TracerStep.STOP, told)
        else:
            told.append(self.state)

    def _tell(self, told: list[TracerState]) -> None:
        """Outside its turn: a listener may have it make another step."""
        for state in told:
            self._heard(self.name, state)


_FAILED = "it has failed, and is switched off"


def _done(step: Callable[[], object]) -> Callable[[], bool]:
    def run() -> bool:
        step()
        return True

    return run


def _nothing() -> None:
    """Most tracers have nothing to destroy."""


def _unheard(name: str, state: TracerState) -> None:
    del name, state


def _new_lock() -> Any:
    """One that gevent does not make cooperative."""
    return unpatched("_thread", "allocate_lock")()
