"""The portable engine: watches threads with Python alone, on any platform and interpreter.

Used where the native engine cannot run, or with `engine = "portable"`. It sees less, and `blind_spots` says
what; what it does see comes in the same evidence.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from loopcanary.model.config import Config
from loopcanary.model.evidence import LaneTotals, StallEvidence
from loopcanary.portable.clocks import ThreadClocks
from loopcanary.portable.gc_log import CollectionLog
from loopcanary.portable.lane import Lane
from loopcanary.portable.lanes import Lanes
from loopcanary.portable.loop import Bracket, SelectBracket, Ticker, selector_of
from loopcanary.portable.observer import Observer, WatchedLane
from loopcanary.portable.stall_watch import Limits
from loopcanary.portable.turns import ThreadTurns
from loopcanary.portable.watchdog import Watchdog, WatchdogBell
from loopcanary.portable.work import WorkBrackets
from loopcanary.protocols.engine import ScopeListener

_NEWS_MAX = 256
_THREAD = "thread"


class _RunningLoop(NamedTuple):
    """A loop that runs."""

    loop: Any
    """Kept, so that no other can get its id."""
    bracket: Bracket
    watched: WatchedLane
    is_entered: bool
    """Whether the turns of its thread have it."""


class PortableBackend:
    """Implements protocols.Backend without the extension. Methods may be called from any thread."""

    name = "portable"

    def __init__(self, config: Config, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._pid = os.getpid()
        self._running = False
        self._limits = Limits(config.threshold_ns, config.first_sample_ns, config.sample_interval_ns)
        self._news: deque[StallEvidence] = deque(maxlen=_NEWS_MAX)
        self._news_bell = WatchdogBell()
        self._news_dropped = 0
        self._collections = CollectionLog(clock)
        self._observer = Observer(
            clock=clock, clocks=ThreadClocks(), collections=self._collections, publish=self._publish
        )
        self._lanes = Lanes(self._limits, clock, self._wake_watchdog)
        self._watchdog = Watchdog(self._observer, lambda: self._lanes.watched, clock, self._limits.delay_ns)
        self._brackets: dict[int, _RunningLoop] = {}
        self._work = WorkBrackets(clock, self._lanes.busy_here, lambda: self._open_lane(_THREAD))
        self.turns = ThreadTurns(clock, self._open_lane, self._watchdog.wake_if_parked)
        """Gets turns and callbacks from the hooks of probes."""

    def start(self) -> None:
        """Begins to watch. Idempotent. RuntimeError where the system gives no thread."""
        if not self._running:
            self._watchdog.start()
            self._collections.start()
            self._running = True

    def stop(self) -> None:
        """Ends watching, joins the watchdog and takes every bracket back. Idempotent."""
        if not self._running:
            return
        self._running = False
        self.turns.stop()
        while self._brackets:
            _, running = self._brackets.popitem()
            running.bracket.detach()
            running.watched.lane.closed_ns = self._clock()
        self._watchdog.stop()
        self._collections.stop()
        self.wake()

    def rest(self) -> None:
        """Ends the watchdog's thread; lanes and open stalls stay."""
        self._watchdog.stop()

    def go_on(self) -> None:
        """Starts the watchdog's thread again. RuntimeError where the system gives none."""
        if self._running:
            self._watchdog.start()

    def wait(self, timeout_s: float | None) -> bool:
        """Sleeps until there is news, `wake`, or the time is over; True if there is news."""
        if not self._news:
            self._news_bell.wait(timeout_s)
        return bool(self._news)

    def wake(self) -> None:
        """Makes a `wait` return."""
        self._news_bell.ring()

    def take(self) -> Sequence[StallEvidence]:
        """Stalls that ended or became an ANR since the last call."""
        taken: list[StallEvidence] = []
        while self._news:
            taken.append(self._news.popleft())
        return taken

    def release(self, evidence: StallEvidence) -> None:
        """Nothing is kept of what was taken."""

    def totals(self) -> Sequence[LaneTotals]:
        """Sums of every watched thread. Callbacks are counted if a probe reports them, turns if no ticker
        does."""
        self._lanes.close_those_of_dead_threads()
        now_ns = self._clock()
        gc_ns = self._collections.total_ns
        return [one.totals(now_ns, gc_ns(one.lane.identity.tid)) for one in self._lanes.watched]

    def statistics(self) -> dict[str, int]:
        return {
            **self._observer.counters,
            "watchdog_rounds": self._watchdog.rounds,
            "watchdog_parks": self._watchdog.parks,
            "watchdog_faults": self._watchdog.faults,
            "lane_faults": sum(one.lane.faults for one in self._lanes.watched) + self.turns.faults,
            "lanes_opened": self._lanes.opened,
            "lanes_refused": self._lanes.refused,
            "stalls_dropped_full": self._news_dropped,
        }

    def loop_started(self, loop: Any, thread_ident: int, kind: str | None = None) -> None:
        """A loop runs in a thread, or is about to. `kind`: what reports call it; None: found out.

        Called on that thread before the loop's first turn, or from any other for a loop that runs.
        """
        if not self._running or id(loop) in self._brackets:
            return
        selector = selector_of(loop)
        kind = kind or type(loop).__module__.partition(".")[0]
        watched = self._lanes.open(thread_ident, kind, loop, by_ticks=selector is None)
        if watched is None:
            return
        self._observer.acquaint(watched)
        bracket = self._bracket(watched.lane, loop, selector)
        is_here = thread_ident == threading.get_ident()
        running = _RunningLoop(loop, bracket, watched, is_here)
        if self._brackets.setdefault(id(loop), running) is running:
            if is_here:
                self.turns.enter(None if selector is None else watched.lane)
            bracket.attach(on_own_thread=is_here)
            self._watchdog.wake_if_parked()

    def loop_stopped(self, loop: Any) -> None:
        """The loop runs no more. On its thread."""
        running = self._brackets.pop(id(loop), None)
        if running is None:
            return
        running.bracket.detach()
        now_ns = self._clock()
        running.watched.lane.end(now_ns)
        running.watched.lane.close(now_ns)
        if running.is_entered:
            self.turns.leave()

    def work_begin(self, name: str) -> bool:
        """A named piece of work begins on this thread: a part of what the thread is in, or timed alone.

        Gives a token for `work_end`, true where it is timed alone.
        """
        is_alone = self._work.begin(name)
        self._watchdog.wake_if_parked()
        return is_alone

    def work_end(self, _token: object = None) -> None:
        """The work ends that began last on this thread."""
        self._work.end()

    def set_scene(self, scene: str | None) -> None:
        """Where the user is, for stalls of this thread from now on."""
        for lane in self._lanes.here():
            lane.scene = scene

    def allow(self, allowance_ns: int) -> None:
        """The running work of this thread may take this time before it is a stall."""
        for lane in self._lanes.here():
            lane.allow(allowance_ns)

    def use_scenes(self, variable: ContextVar[str | None]) -> None:
        """Samples read the scene of the callback's context."""
        self._observer.scenes = variable

    @property
    def listener(self) -> ScopeListener:
        """Gets scenes and work from `scopes`."""
        return self

    def set_facts(self, facts: dict[str, Any]) -> bool:  # noqa: ARG002 - as FileBackend has it
        """There is no evidence outside the process to put facts beside: False."""
        return False

    def discard(self) -> None:
        """Nothing is left behind that could be removed."""

    def let_go(self) -> None:
        """In a forked child: takes the brackets off the parent's loops, without its thread and locks."""
        if os.getpid() == self._pid:
            return
        self._running = False
        for running in self._brackets.values():
            running.bracket.detach()
        self._brackets = {}
        self._collections.stop()

    def _bracket(self, lane: Lane, loop: Any, selector: Any) -> Bracket:
        wake = self._watchdog.wake_if_parked
        if selector is not None:
            return SelectBracket(lane, selector, self._clock, wake)
        return Ticker(lane, loop, self._clock, wake, self._limits.delay_ns)

    def _open_lane(self, kind: str) -> Lane | None:
        watched = self._lanes.open(threading.get_ident(), kind) if self._running else None
        if watched is None:
            return None
        self._observer.acquaint(watched)
        return watched.lane

    def _wake_watchdog(self) -> None:
        self._watchdog.wake()

    def _publish(self, evidence: StallEvidence) -> None:
        if len(self._news) == _NEWS_MAX:
            self._news_dropped += 1
        self._news.append(evidence)
        self._news_bell.ring()
