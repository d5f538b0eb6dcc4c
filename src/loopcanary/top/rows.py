"""Makes a row for each lane from readings of processes: its present state and its history. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model import LaneTotals, LoopHealth, Session
from loopcanary.model.live import LaneReading, Life, ProcessReading, Work
from loopcanary.model.stall import HANG_NS, Stall
from loopcanary.top.past import LaneKey, Past, between, key_of, utilization_between

_S = 1_000_000_000
_LEAST_NS = 10_000_000
"""Two readings that are closer together than this give no rate."""

Health = Callable[[LaneTotals, int], LoopHealth]


class State(Enum):
    """What a lane's thread does; the worst state comes first."""

    HUNG = "hung"
    """In a stall of a second or more."""
    STALLED = "stalled"
    BUSY = "busy"
    IDLE = "idle"
    KILLED = "killed"
    EXITED = "exited"
    CLOSED = "closed"
    """The loop or thread is gone, its process runs."""

    @property
    def is_live(self) -> bool:
        return self in (State.HUNG, State.STALLED, State.BUSY, State.IDLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """Waiting times of events that arrive at random moments."""

    p50_ns: int
    p99_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRow:
    """One watched loop or thread. None: not known, or not yet."""

    key: LaneKey
    pid: int
    is_near: bool
    """Whether its process can be read from here."""
    program: str
    session: Session
    loop_kind: str
    thread: str
    tid: int
    state: State
    state_ns: int | None
    """How long it has been busy, stalled or hung, or how long ago it was killed, exited or closed."""
    threshold_ns: int
    utilization_now: float | None
    """Between the last two readings."""
    utilization: float
    """Since the lane was opened."""
    delay_now: Delays | None
    """Over the last seconds, at most RECENT_NS."""
    delay: Delays
    """Since the lane was opened."""
    callbacks_per_s: float | None
    """Between the last two readings."""
    work: Work | None
    """Its present work, or that in which it was killed."""
    work_ns: int | None
    """How long the callback, or else the turn, has been running."""
    stalls: int
    """Includes the stall that goes on."""
    stalled_ns: int
    last: Stall | None
    """The latest stall that could be judged."""
    latest_stall_ns: int | None
    """The duration of the latest stall that is over, judged or not."""
    store: str | None
    is_past: bool = False
    """Whether its loop is gone, and its process has another or had a later one."""


def rows(processes: Sequence[ProcessReading], past: Past, health: Health, now_wall_ns: int) -> list[LaneRow]:
    """A row for each lane. `past` has earlier readings only."""
    return [
        replace(_row(process, lane, past, health, now_wall_ns), is_past=is_past)
        for process in processes
        for lane, is_past in _lanes(process)
    ]


def _lanes(process: ProcessReading) -> Iterator[tuple[LaneReading, bool]]:
    closed = {lane.totals.lane: lane.totals.closed_ns for lane in process.lanes}
    ends = [end_ns for end_ns in closed.values() if end_ns is not None]
    latest_ns = max(ends) if len(ends) == len(closed) and ends else None
    for lane in process.lanes:
        end_ns = lane.totals.closed_ns
        yield lane, end_ns is not None and end_ns != latest_ns


def _row(process: ProcessReading, lane: LaneReading, past: Past, health: Health, now_wall_ns: int) -> LaneRow:
    totals, at_ns = lane.totals, process.at_ns
    key = key_of(process, lane)
    whole = health(totals, at_ns)
    work_ns = _work_ns(lane, at_ns)
    state = _state(process, lane, at_ns)
    now = _Now.of(lane, at_ns, past, key, health) if state.is_live else _Now()
    goes_on = state in (State.HUNG, State.STALLED) or (state is State.KILLED and lane.in_stall)
    return LaneRow(
        key=key,
        pid=process.session.pid,
        is_near=process.is_near,
        program=process.session.name or process.session.command or f"process {process.session.pid}",
        session=process.session,
        loop_kind=totals.loop_kind,
        thread=totals.thread_name,
        tid=totals.tid,
        state=state,
        state_ns=_state_ns(state, process, lane, work_ns, now_wall_ns),
        threshold_ns=lane.threshold_ns,
        utilization_now=now.utilization,
        utilization=whole.utilization,
        delay_now=now.delay,
        delay=Delays(p50_ns=whole.delay_p50_ns, p99_ns=whole.delay_p99_ns),
        callbacks_per_s=now.callbacks_per_s,
        work=lane.work,
        work_ns=work_ns,
        stalls=totals.stalls + goes_on,
        stalled_ns=totals.stalled_ns + ((work_ns or 0) if goes_on else 0),
        last=process.last.get(totals.lane),
        latest_stall_ns=lane.latest_stall_ns,
        store=process.store,
    )


def _state(process: ProcessReading, lane: LaneReading, at_ns: int) -> State:
    if process.life is Life.KILLED:
        return State.KILLED
    if process.life is Life.EXITED:
        return State.EXITED
    if lane.totals.closed_ns is not None:
        return State.CLOSED
    if lane.callback_since_ns is None and lane.turn_since_ns is None:
        return State.IDLE
    if not _is_stalled(lane, at_ns):
        return State.BUSY
    return State.HUNG if (_stalled_ns(lane, at_ns) or 0) >= HANG_NS else State.STALLED


def _is_stalled(lane: LaneReading, at_ns: int) -> bool:
    """Judges as the watchdog, which may be a moment behind, or stopped with its process."""
    if lane.in_stall:
        return True
    if lane.callback_since_ns is not None:
        granted_ns = max(lane.threshold_ns, lane.allowance_ns)
        if at_ns - lane.callback_since_ns > granted_ns:
            return True
    return (
        lane.turn_since_ns is not None
        and not lane.allowance_ns
        and at_ns - lane.turn_since_ns > lane.threshold_ns > 0
    )


def _stalled_ns(lane: LaneReading, at_ns: int) -> int | None:
    """How long the stall has lasted: the callback where that alone is too long, or else its turn."""
    callback, turn = lane.callback_since_ns, lane.turn_since_ns
    if callback is not None and (turn is None or at_ns - callback > lane.threshold_ns):
        return max(at_ns - callback, 0)
    return None if turn is None else max(at_ns - turn, 0)


def _work_ns(lane: LaneReading, at_ns: int) -> int | None:
    if lane.totals.closed_ns is not None:
        return None
    since = lane.callback_since_ns if lane.callback_since_ns is not None else lane.turn_since_ns
    return None if since is None else max(at_ns - since, 0)


def _state_ns(
    state: State, process: ProcessReading, lane: LaneReading, work_ns: int | None, now_wall_ns: int
) -> int | None:
    if state in (State.KILLED, State.EXITED):
        return max(now_wall_ns - process.at_wall_ns, 0)
    if state is State.CLOSED:
        return max(process.at_ns - (lane.totals.closed_ns or 0), 0)
    if state in (State.HUNG, State.STALLED):
        return _stalled_ns(lane, process.at_ns)
    return work_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Now:
    """Rates from two readings."""

    utilization: float | None = None
    callbacks_per_s: float | None = None
    delay: Delays | None = None

    @classmethod
    def of(cls, lane: LaneReading, at_ns: int, past: Past, key: LaneKey, health: Health) -> _Now:
        """Compares with the last reading, and for the delays with the oldest recent one."""
        last, first = past.last(key), past.first(key)
        if last is None or first is None or at_ns - last[0] < _LEAST_NS:
            return cls()
        before_ns, before = last
        recent = health(between(first[1].totals, first[0], lane.totals, at_ns), at_ns)
        callbacks = _callbacks(lane) - _callbacks(before)
        return cls(
            utilization=utilization_between(before.totals, before_ns, lane.totals, at_ns),
            callbacks_per_s=max(callbacks, 0) / ((at_ns - before_ns) / _S),
            delay=Delays(p50_ns=recent.delay_p50_ns, p99_ns=recent.delay_p99_ns),
        )


def _callbacks(lane: LaneReading) -> int:
    return lane.totals.callbacks + lane.turn_callbacks


class RowReader:
    """Reads processes again and again, and keeps readings for the differences. Not thread-safe."""

    def __init__(self, read: Callable[[], Sequence[ProcessReading]], health: Health) -> None:
        self._read = read
        self._health = health
        self._past = Past()

    def look(self) -> list[LaneRow]:
        processes = self._read()
        found = rows(processes, self._past, self._health, time.time_ns())
        self._past.add(processes)
        return found
