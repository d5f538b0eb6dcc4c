"""What a tracer is doing in a process now."""

from __future__ import annotations

from enum import Enum

from loopcanary.late_dataclass import dataclass


class TracerStep(Enum):
    """What a tracer is called for."""

    INIT = "init"
    START = "start"
    STOP = "stop"
    DESTROY = "destroy"


class TracerState(Enum):
    """How far a tracer has come."""

    CREATED = "created"
    INITED = "inited"
    STARTED = "started"
    """It records."""
    STOPPED = "stopped"
    DESTROYED = "destroyed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TracerStatus:
    """One tracer of a process."""

    name: str
    state: TracerState
    failed: str | None = None
    """What it failed with, and was switched off for."""
    steps_ns: int = 0
    """How long its steps (init, start, stop, destroy) have held up the threads that made them."""
