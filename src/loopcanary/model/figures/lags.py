"""Figures of input events and of idle work, and what is too long for them."""

from __future__ import annotations

from dataclasses import field

from loopcanary.late_dataclass import dataclass
from loopcanary.model.spelling import spelled

INPUT_LAG_NS = 200_000_000
"""An input that is handled later is an issue: the limit of "good" of web.dev's Interaction to Next Paint."""
IDLE_LAG_NS = 2_000_000_000
"""An idle handler that takes longer is an issue: Matrix's IdleHandlerLagTracer."""
SPIN_NS = 1_000_000_000
"""A loop that never waits for this time, since one kind of work asks for itself again each time, spins."""


REQUESTS_ONE_OF = 16
"""One of so many requests is timed, as by the engine (LC_ANSWERS_ONE_OF in native/core/answers/answers.h). By
count: by time it would miss requests that come in a crowd, as they do after the loop was blocked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFigures:
    """How long input events took on one thread, from their time stamp to the end of their handling.

    Quantiles are upper bounds of buckets 1/16 of an octave wide: at most 6.25 % too long.
    """

    thread: str
    loop: str
    events: int
    p50_ns: int
    p98_ns: int
    """As Interaction to Next Paint: of 50 events, one may be worse."""
    worst_ns: int
    worst: str | None
    """The event that took longest, by class and receiver; None: unknown."""
    queued_ns: int = field(metadata=spelled(absent=0))
    """Time that events waited for the loop, added up."""
    lag_ns: int = field(metadata=spelled(absent=0))
    """Time from arrival to the end of handling, added up."""
    one_of: int = 1
    """One of so many was timed, and is counted here; 1: all. Of a server's requests, one of sixteen."""

    @property
    def is_sampled(self) -> bool:
        """A part of them was timed."""
        return self.one_of > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleFigures:
    """One kind of idle work on one thread."""

    thread: str
    loop: str
    name: str
    runs: int
    total_ns: int
    longest_ns: int
    spun_ns: int = 0
    """Time in which it kept the loop from waiting by scheduling itself again each time."""
