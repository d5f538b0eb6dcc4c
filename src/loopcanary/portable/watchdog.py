"""The thread of the portable engine: runs the observer when something is due, and rests otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable

from loopcanary.portable.observer import OWN_THREADS, Observer, WatchedLane

_PARK_AFTER_NS = 1_000_000_000
_FAULTS_MAX = 10
_JOIN_S = 2.0


class WatchdogBell:
    """Wakes one thread. Ringing never waits and takes no lock that a ringer could hold already, so that
    signal handlers and finalizers may ring; rings add up to one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()  # held: not rung yet

    def ring(self) -> None:
        """Wakes the waiter, or the next one. Any thread."""
        try:
            self._lock.release()
        except RuntimeError:
            return  # Rung already, and not yet heard.

    def wait(self, timeout_s: float | None) -> bool:
        """Waits without the GIL; False where the time was over first."""
        if timeout_s is None:
            return self._lock.acquire()
        return self._lock.acquire(timeout=min(max(timeout_s, 0.0), threading.TIMEOUT_MAX))


class Watchdog:
    """Looks at the lanes while any is busy; parks after a second in which none was."""

    def __init__(
        self,
        observer: Observer,
        watched: Callable[[], tuple[WatchedLane, ...]],
        clock: Callable[[], int],
        pause_ns: int,
    ) -> None:
        self._observer = observer
        self._watched = watched
        self._clock = clock
        self._pause_ns = pause_ns
        self._bell = WatchdogBell()
        self._parked = False
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.faults = 0
        self.rounds = 0
        self.parks = 0

    def start(self) -> None:
        """Starts the thread. Any thread."""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"{OWN_THREADS}-watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> bool:
        """Ends and joins the thread; whether it has ended. Any thread, also its own and that of a forked
        child."""
        self._stopping = True
        self._bell.ring()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_S)
        return thread is None or not thread.is_alive()

    def wake_if_parked(self) -> None:
        """Work begins: called once a turn by watched threads, so one attribute is all it costs."""
        if self._parked:
            self._parked = False
            self._bell.ring()

    def wake(self) -> None:
        """There is something to do at once. Any thread."""
        self._bell.ring()

    def _run(self) -> None:
        active, seen_ns = 0, self._clock()
        while not self._stopping and self.faults < _FAULTS_MAX:
            now_ns = self._clock()
            next_ns = self._round(now_ns)
            watched = self._watched()
            turns = sum(one.lane.epoch for one in watched)
            if next_ns is not None or turns != active:
                active, seen_ns = turns, now_ns
            if next_ns is None and now_ns - seen_ns >= _PARK_AFTER_NS:
                self._park(watched)
                seen_ns = self._clock()
                continue
            pause_ns = self._pause_ns if next_ns is None else min(self._pause_ns, next_ns - self._clock())
            self._bell.wait(pause_ns / 1e9)
        if self.faults < _FAULTS_MAX:
            # A stall may have ended since the last look: the caller that stops us wants it.
            self._round(self._clock())

    def _round(self, now_ns: int) -> int | None:
        self.rounds += 1
        try:
            return self._observer.round(self._watched(), now_ns)
        except Exception as error:  # noqa: BLE001 - the boundary: nothing of ours reaches the program
            self.faults += 1
            if self.faults == 1:
                _log_fault(error)
            return None

    def _park(self, watched: tuple[WatchedLane, ...]) -> None:
        """Rests until work begins. The word first, then a last look: work that begins after it rings."""
        self._parked = True
        if not self._stopping and all(one.lane.look() is None for one in watched):
            self.parks += 1
            self._bell.wait(None)
        self._parked = False


def _log_fault(error: Exception) -> None:
    import logging  # only where something failed

    text = "the portable engine failed in a round, and ends after %d such"
    logging.getLogger("loopcanary").error(text, _FAULTS_MAX, exc_info=error)
