"""What recovery wants of flight files and of the diagnosis, both of which are other parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopcanary.late_dataclass import dataclass
from loopcanary.model import (
    Clock,
    Issue,
    LaneTotals,
    LoopHealth,
    Session,
    Stall,
    StallEvidence,
    StallScope,
    StallState,
    TraceFigures,
)
from loopcanary.model.session import TaskSurvey
from loopcanary.wire import WireError, from_wire
from loopcanary.words.endings import BY_EXIT, with_reason

if TYPE_CHECKING:
    from loopcanary.flight import FlightFile
    from loopcanary.flight.header import FlightHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class Forensics:
    """How remains are read and judged; wired by loopcanary.assembly."""

    place: Callable[[int, str], Path]
    """Where in memory the file lies to which a user's link of a name leads."""
    open: Callable[[Path], FlightFile]
    is_dead: Callable[[FlightFile], bool]
    """True only for a process that certainly runs no more."""
    is_kept: Callable[[FlightFile], bool]
    """Whether a keeper at work watched the process, and is about to take its file in."""
    hold: Callable[[Path], AbstractContextManager[bool]]
    """Locks a dead process's file while it is taken in. False: another process does that now."""
    judge: Callable[[StallEvidence, Session, Clock, StallState], Stall]
    start: Callable[[FlightFile, Session, int | None], Issue | None]
    """The start of the process, if it was noted and is over; of one that is dead, seen to live last at this
    monotonic time, in any case."""
    is_wanted: Callable[[Issue], bool]
    """Whether the settings of its process want it stored."""
    intercept: Callable[[Stall], Stall | None]
    """What becomes of it before it is stored; None: it is dropped."""
    health: Callable[[Sequence[LaneTotals], int], tuple[LoopHealth, ...]]
    """Figures of the loops at a monotonic time."""
    noted: Callable[[FlightFile, Session, Clock, Sequence[Stall]], tuple[TraceFigures, Sequence[Issue]]]
    """What it noted of frames, input and idle work: all figures that are known of it, and issues that the
    store does not have."""
    survey: Callable[[FlightFile, Session], TaskSurvey | None]
    """What its tasks waited for last."""
    unreadable: tuple[type[Exception], ...]
    """What `open` and the readers raise for a file that is not a flight file."""


def session_of(facts: dict[str, Any], header: FlightHeader) -> Session:
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


_DAY_NS = 86_400_000_000_000
"""The wall clock may have been set by so much."""
_TIMES = (
    *("busy_ns", "callback_ns", "gc_ns", "longest_turn_ns"),
    *("on_cpu_ns", "queue_ns_max", "run_queue_ns", "stalled_ns"),
)
_LATE_NS = 60_000_000_000
"""The watchdog, whose look is the last sign of life, may have been kept from looking by so much."""


def credible(header: FlightHeader, found: StallEvidence) -> StallEvidence | None:
    """The stall; one longer than its process as long as its samples show it; None where they show nothing."""
    last_sign_ns = max(header.heartbeat_ns, header.ended_ns or 0)
    longest_ns = max(last_sign_ns - header.started_ns, 0) + _LATE_NS
    if last_ns(found) - found.begin_ns <= longest_ns:
        return found
    if not found.samples or found.samples[-1].at_ns - found.samples[0].at_ns > longest_ns:
        return None
    begin_ns, end_ns = found.samples[0].at_ns, found.samples[-1].at_ns
    return replace(
        found, begin_ns=begin_ns, end_ns=None if found.end_ns is None else end_ns, last_look_ns=end_ns
    )


def latest_ns(header: FlightHeader, now_wall_ns: int) -> int:
    """The last instant, by the process's clock, at which it may have lived: what lies beyond is damage."""
    return header.clock.monotonic_ns + now_wall_ns - header.clock.wall_ns + _DAY_NS


def credible_lane(header: FlightHeader, lane: LaneTotals, now_wall_ns: int) -> LaneTotals:
    """The lane; no time of it longer than its process may have lived."""
    latest = latest_ns(header, now_wall_ns)
    started = header.started_ns if header.started_ns <= latest else 0
    times = {name: getattr(lane, name) for name in _TIMES}
    return replace(
        lane,
        opened_ns=max(started, min(lane.opened_ns, latest)),
        **{name: min(time, latest - started) for name, time in times.items() if time is not None},
    )


def last_ns(found: StallEvidence) -> int:
    """When it was over, or last seen."""
    return found.last_look_ns if found.end_ns is None else found.end_ns


def ended_by(found: StallEvidence, end_ns: int, *, by_exit: bool) -> StallEvidence:
    """A stall in which the process ended by its own will ended with it; `by_exit`: by os._exit."""
    if found.end_ns is not None:
        return found
    by = with_reason(found.killed_by, BY_EXIT) if by_exit else found.killed_by
    return replace(found, end_ns=max(found.begin_ns, end_ns), killed_by=by)


def was_end(header: FlightHeader, found: StallEvidence) -> bool:
    """Whether a fault that came in no turn ended the process, which may survive one; of all else, yes."""
    return found.scope is not StallScope.THREAD or header.fault_of(found.tid, found.begin_ns) is not None
