"""What recovery wants of flight files and of the diagnosis, both of which are other parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from loopcanary.late_dataclass import dataclass
from loopcanary.model import (
    Clock,
    Fault,
    Issue,
    KilledBy,
    LaneTotals,
    LoopHealth,
    Session,
    Stall,
    StallEvidence,
    StallState,
    TraceFigures,
)
from loopcanary.wire import WireError, from_wire


class Header(Protocol):
    """The part of a flight file's header that recovery reads; `flight.FlightHeader` has it."""

    @property
    def pid(self) -> int:
        """Process id."""

    @property
    def parent_pid(self) -> int:
        """Process id of the parent."""

    @property
    def started_ns(self) -> int:
        """When the engine started, monotonic."""

    @property
    def ended_ns(self) -> int | None:
        """When the process ended well, monotonic; None where it did not."""

    @property
    def heartbeat_ns(self) -> int:
        """When the watchdog last looked, monotonic; it does not look while all loops wait."""

    @property
    def clock(self) -> Clock:
        """The pairing of the clocks."""

    def fault_of(self, tid: int, since_ns: int) -> Fault | None:
        """The fault of this thread that came from then on (monotonic) and ended the process; None: none."""

    def killed_by(self, since_ns: int) -> KilledBy | None:
        """What signals that came from then on (monotonic) say of the end of the process; None: nothing."""


class Remains(Protocol):
    """An open flight file; `flight.FlightFile` is one."""

    @property
    def identity(self) -> tuple[int, int] | None:
        """Device and inode; None where it is no file."""

    @property
    def header(self) -> Header:
        """The header."""

    def facts(self) -> dict[str, Any]:
        """The session as a dict (loopcanary.wire); empty where it cannot be read."""

    def lanes(self) -> Sequence[LaneTotals]:
        """Sums of every watched thread."""

    def counters(self) -> Mapping[str, int]:
        """The native side's own counters."""

    def stalls(self, *, faults: bool = False) -> Sequence[tuple[int, StallEvidence]]:
        """Stalls in slots, with the slot's number; and threads that caused a fault in no turn."""

    def unslotted_stalls(self) -> Sequence[StallEvidence]:
        """Stalls of which only the end was recorded."""

    def close(self) -> None:
        """Lets go of the file."""


_R = TypeVar("_R", bound=Remains)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forensics(Generic[_R]):
    """How remains are read and judged; wired by loopcanary.assembly."""

    place: Callable[[int, str], Path]
    """Where in memory the file lies to which a user's link of a name leads."""
    open: Callable[[Path], _R]
    is_dead: Callable[[_R], bool]
    """True only for a process that certainly runs no more."""
    is_kept: Callable[[_R], bool]
    """Whether a keeper at work watched the process, and is about to take its file in."""
    hold: Callable[[Path], AbstractContextManager[bool]]
    """Locks a dead process's file while it is taken in. False: another process does that now."""
    judge: Callable[[StallEvidence, Session, Clock, StallState], Stall]
    start: Callable[[_R, Session, int | None], Issue | None]
    """The start of the process, if it was noted and is over; of one that is dead, seen to live last at this
    monotonic time, in any case."""
    is_wanted: Callable[[Stall], bool]
    """Whether the settings of its process want it stored."""
    intercept: Callable[[Stall], Stall | None]
    """What becomes of it before it is stored; None: it is dropped."""
    health: Callable[[Sequence[LaneTotals], int], tuple[LoopHealth, ...]]
    """Figures of the loops at a monotonic time."""
    noted: Callable[[_R, Session, Clock, Sequence[Stall]], tuple[TraceFigures, Sequence[Issue]]]
    """What it noted of frames, input and idle work: all figures that are known of it, and issues that the
    store does not have."""
    unreadable: tuple[type[Exception], ...]
    """What `open` and the readers raise for a file that is no flight file."""


def session_of(facts: dict[str, Any], header: Header) -> Session:
    """The session as its process described it, or, before it came to that, as the header says."""
    try:
        return from_wire(Session, facts)
    except WireError:
        return Session(
            id=f"unnamed-{header.pid}-{header.started_ns}",
            name=f"process {header.pid}",
            pid=header.pid,
            parent_pid=header.parent_pid,
            host="",
            python="",
            engine="native",
            started_wall_ns=header.clock.to_wall_ns(header.started_ns),
        )
