"""`loopcanary tracers`: tracers of a running program, read from its flight file, started and stopped by an
errand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from loopcanary import flight
from loopcanary.assembly.errands.asking import Errand, watched
from loopcanary.assembly.tracing.errands import REFUSED
from loopcanary.engine.traced import TRACERS
from loopcanary.late_dataclass import dataclass
from loopcanary.model.figures.tracers import TracerStatus, TracerStep
from loopcanary.model.outside import Unseen
from loopcanary.outside.errors import HangsError, NotReachableError, NotReadableError, OutsideError
from loopcanary.wire import WireError, from_wire


@dataclass(frozen=True, slots=True)
class TracersSeen:
    """What a process says of its tracers."""

    session: str
    """Its run's id."""
    tracers: tuple[TracerStatus, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why each that made no step did not, by name."""


def tracers_of(
    pid: int, wanted: Mapping[TracerStep, Sequence[str]], timeout_s: float, session: str | None = None
) -> TracersSeen | Unseen:
    """The tracers of the process, when the steps that are wanted were made; or why that is not known.

    Args:
        pid: Its number.
        wanted: Names by START and STOP, or `errands.ALL`.
        timeout_s: How long the steps may take to begin.
        session: The id of its run: numbers of processes are given out again. None: whichever it is.
    """
    try:
        process, path = watched(pid)
        with flight.FlightFile.open(path) as file:
            facts = file.facts()
        run = str(facts.get("id", ""))
        if session not in (None, run):
            raise NotReachableError(f"process {pid} is another one by now")
        if not any(wanted.values()):
            return TracersSeen(run, statuses_in(facts))
        steps = {step.value: list(names) for step, names in wanted.items()}
        with Errand(process, path) as errand:
            answer = errand.ask({TRACERS: steps}, timeout_s)
            errand.is_done()
        if "error" in answer:
            raise NotReachableError(f"process {pid} cannot be asked: {answer['error']}")
        return TracersSeen(run, statuses_in(answer), {**answer[REFUSED]})
    except OutsideError as error:
        is_refused = isinstance(error, NotReadableError | NotReachableError)
        return Unseen(why=str(error), is_refused=is_refused, hangs=isinstance(error, HangsError))
    except (flight.FlightError, OSError) as error:
        return Unseen(why=f"the flight file of process {pid} cannot be read: {error}", is_refused=True)


def statuses_in(facts: Mapping[str, Any]) -> tuple[TracerStatus, ...]:
    """Of the facts beside a program's evidence, which may be anything."""
    try:
        return tuple(from_wire(TracerStatus, one) for one in facts.get(TRACERS, ()))
    except (WireError, TypeError):  # of another version
        return ()
