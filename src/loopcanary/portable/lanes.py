"""The lanes of a process: given out, given again, closed, bounded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from loopcanary.portable.lane import Lane, LaneIdentity
from loopcanary.portable.stall_watch import Limits
from loopcanary.portable.watchdog import WatchedLane

LANES_MAX = 256
_TICKS_PER_DELAY = 4


class Lanes:
    """All lanes that are watched. `watched` is replaced, never changed: it may be walked without a lock."""

    def __init__(self, limits: Limits, clock: Callable[[], int], on_ended: Callable[[], None]) -> None:
        self._limits = limits
        self._clock = clock
        self._on_ended = on_ended
        # RLock: a finalizer that runs in here may open a lane as well.
        self._lock = threading.RLock()
        self.watched: tuple[WatchedLane, ...] = ()
        self.opened = 0
        self.refused = 0

    def open(self, ident: int, kind: str, loop: Any = None, *, by_ticks: bool = False) -> WatchedLane | None:
        """A lane for work of a thread; its last one of that kind if it has ended. None, and counted, where
        there are too many. Any thread."""
        with self._lock:
            self.close_those_of_dead_threads()
            thread = _thread(ident)
            identity = LaneIdentity(
                number=self.opened + 1,
                tid=_native_id(thread),
                ident=ident,
                loop_kind=kind,
                thread_name=thread.name if thread is not None else "",
                by_ticks=by_ticks,
            )
            return self._reopen(identity, loop) or self._open(identity, loop)

    def here(self) -> list[Lane]:
        ident = threading.get_ident()
        lanes = (one.lane for one in self.watched)
        return [lane for lane in lanes if lane.identity.ident == ident and lane.closed_ns is None]

    def busy_here(self) -> Lane | None:
        """The lane of the calling thread's loop, where that is in a turn that is timed exactly."""
        lanes = (lane for lane in self.here() if not lane.identity.by_ticks)
        return next((lane for lane in lanes if lane.look() is not None), None)

    def close_those_of_dead_threads(self) -> None:
        """Closes lanes of ended threads, which do not report their end. Any thread."""
        for one in self.watched:
            lane = one.lane
            # The system gives idents again; with another native id it is another thread.
            if lane.closed_ns is None and _native_id(_thread(lane.identity.ident)) != lane.identity.tid:
                lane.close(self._clock())

    def _reopen(self, identity: LaneIdentity, loop: Any) -> WatchedLane | None:
        """A program may run a thousand loops in one thread, one after the other."""
        wanted = identity._replace(number=0, thread_name="")
        for one in self.watched:
            has = one.lane.identity._replace(number=0, thread_name="")
            if one.lane.closed_ns is not None and has == wanted:
                one.follow(loop)
                one.lane.closed_ns = None
                return one
        return None

    def _open(self, identity: LaneIdentity, loop: Any) -> WatchedLane | None:
        room = self.watched
        if len(room) >= LANES_MAX:
            closed = next((one for one in room if one.lane.closed_ns is not None), None)
            room = tuple(one for one in room if one is not closed)
        if len(room) >= LANES_MAX:
            self.refused += 1
            return None
        self.opened += 1
        lane = Lane(
            identity,
            threshold_ns=self._limits.threshold_ns,
            opened_ns=self._clock(),
            on_ended=self._on_ended,
        )
        limits = self._limits
        if identity.by_ticks:
            # A tick is due half a period after a stall began, on average: sample the sooner.
            limits = limits._replace(delay_ns=limits.delay_ns // _TICKS_PER_DELAY)
        watched = WatchedLane(lane, limits, loop)
        self.watched = (*room, watched)
        return watched


def _thread(ident: int) -> threading.Thread | None:
    # Not threading.enumerate(): that takes a lock, and the thread that holds it may be the one that stalls.
    known: dict[int, threading.Thread] = threading._active  # type: ignore[attr-defined]  # noqa: SLF001
    return known.get(ident)


def _native_id(thread: threading.Thread | None) -> int:
    """The kernel's id of a thread; 0 of one that threading does not know."""
    return getattr(thread, "native_id", None) or 0
