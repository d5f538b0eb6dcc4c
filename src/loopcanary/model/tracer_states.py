"""What a tracer is doing in a process now."""

from __future__ import annotations

from enum import Enum

from loopcanary.late_dataclass import dataclass


class TracerStep(Enum):
    """A step in the life of a tracer: each calls the tracer's method of that name."""

    INIT = "init"
    START = "start"
    STOP = "stop"
    DESTROY = "destroy"


class TracerState(Enum):
    """The state of a tracer."""

    CREATED = "created"
    INITED = "inited"
    STARTED = "started"
    """The tracer records."""
    STOPPED = "stopped"
    DESTROYED = "destroyed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TracerStatus:
    """One tracer of a process."""

    name: str
    state: TracerState
    failed: str | None = None
    """The error for which the tracer was switched off; None: it has not failed."""
    steps_ns: int = 0
    """Time for which its steps (init, start, stop, destroy) have blocked the threads that made them."""
