"""The life of a tracer: which step may follow which, and how a step is made.

As Matrix's plugins: created, inited, started, stopped, destroyed; started again after a stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from loopcanary.model.tracer_states import TracerState, TracerStep
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
        return "it is already initialised"
    if step is TracerStep.START and state is TracerState.CREATED:
        return "it is not initialised"
    if step is TracerStep.START and state is TracerState.STARTED:
        return "it is already started"
    if step is TracerStep.STOP and state is not TracerState.STARTED:
        return "it is not started"
    return None


def steps_of(state: TracerState, step: TracerStep) -> Sequence[TracerStep]:
    """What is called for it, in order: what is destroyed is stopped first."""
    is_on = step is TracerStep.DESTROY and state is TracerState.STARTED
    return (TracerStep.STOP, TracerStep.DESTROY) if is_on else (step,)


class Call(Protocol):
    """See engine.Boundary.call."""

    def __call__(self, part: str, function: Callable[[], Any], /, *, keep: bool = False) -> Any:
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
        # Tried and not waited for: this may be a signal handler in the middle of a step.
        if not self._turn.acquire(blocking=False):
            return _FAILED if self.has_failed else "another step is in progress"
        why_not = self._refusal(step)
        self._take_turn(() if why_not else steps_of(self.state, step))
        if step in (TracerStep.INIT, TracerStep.START) and self.has_failed:
            why_not = _FAILED
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
            self._take_turn((TracerStep.STOP,) if self._owes_stop() else ())

    def _owes_stop(self) -> bool:
        return self._is_over and self.state in (TracerState.INITED, TracerState.STARTED)

    def _take_turn(self, steps: Sequence[TracerStep]) -> None:
        """Makes these, and gives the turn back, unless the last one goes on."""
        told: list[TracerState] = []
        is_over = True
        try:
            is_over = all(self._make(each, told) for each in steps)
        finally:
            if is_over:
                self._turn.release()
        for state in told:  # outside its turn: a listener may have it make another step
            self._heard(self.name, state)

    def _make(self, step: TracerStep, told: list[TracerState]) -> bool:
        """Its turn. One that fails to begin is stopped, and made no more. False: the step goes on, on another
        thread, which ends the turn when it comes back."""
        self.state = _COMES_TO[step]  # before the call: it may not come back
        begins = step in (TracerStep.INIT, TracerStep.START)
        first = iter((True,))  # taken by the end of the step, or by the end of the wait for it

        def run() -> bool:
            try:
                self._steps.get(step, _nothing)()
            finally:
                if not next(first, False):
                    self._come_back(has_failed=begins)
            return True

        began_ns = time.monotonic_ns()
        is_done = self._call(self.part if begins else f"end of {self.part}", run, keep=not begins)
        self.steps_ns += time.monotonic_ns() - began_ns
        self.has_failed |= begins and not is_done
        if next(first, False):
            return False
        if begins and not is_done:
            return self._make(TracerStep.STOP, told)
        told.append(self.state)
        return True

    def _come_back(self, *, has_failed: bool) -> None:
        """A step is over after all."""
        self.has_failed |= has_failed
        self._is_over |= has_failed
        self._turn.release()
        self._settle()


_FAILED = "it has failed, and is switched off"


def _nothing() -> None:
    """Most tracers have nothing to destroy."""


def _unheard(name: str, state: TracerState) -> None:
    del name, state


def _new_lock() -> Any:
    """One that gevent does not make cooperative."""
    return unpatched("_thread", "allocate_lock")()
