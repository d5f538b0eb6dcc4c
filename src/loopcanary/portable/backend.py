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
from typing import TYPE_CHECKING, Any

from loopcanary.model.config import Config
from loopcanary.model.evidence import LaneTotals, StallEvidence
from loopcanary.portable.clocks import CollectionLog, ThreadClocks
from loopcanary.portable.hang_file import HangFile
from loopcanary.portable.lane import THREAD, Lane
from loopcanary.portable.lanes import Lanes
from loopcanary.portable.loops import RunningLoops
from loopcanary.portable.stall_watch import Limits
from loopcanary.portable.turns import ThreadTurns
from loopcanary.portable.watchdog import Observer, Watchdog, WatchdogBell
from loopcanary.portable.work import PortableScopes, WorkBrackets

if TYPE_CHECKING:
    from typing import Protocol

    class Feeds(Protocol):
        """A part that starts and stops with the engine."""

        def start(self) -> None: ...

        def stop(self) -> None: ...


_NEWS_MAX = 256


class PortableBackend:
    """Implements protocols.Backend without the extension. Methods may be called from any thread."""

    name = "portable"

    def __init__(
        self,
        config: Config,
        clock: Callable[[], int] = time.monotonic_ns,
        *,
        feeder: Callable[[Callable[[], tuple[str, str, int] | None]], Feeds] | None = None,
        file: str | None = None,
    ) -> None:
        """`feeder`: makes what is to run with it and asks for the longest turn: its thread, kind and ns.
        `file`: the path at which hangs are left for who comes after a kill; None: they are not."""
        self.file = file
        self._hangs = HangFile(file, clock)
        self._clock = clock
        self._pid = os.getpid()
        self._running = False
        self._limits = Limits(config.threshold_ns, config.first_sample_ns, config.sample_interval_ns)
        self._news: deque[StallEvidence] = deque(maxlen=_NEWS_MAX)
        self._news_bell = WatchdogBell()
        self._news_dropped = 0
        self._collections = CollectionLog(clock)
        self._observer = Observer(
            clock=clock,
            clocks=ThreadClocks(),
            collections=self._collections,
            publish=self._publish,
            hangs=self._hangs,
        )
        self._lanes = Lanes(self._limits, clock, self._wake_watchdog)
        self._watchdog = Watchdog(self._observer, lambda: self._lanes.watched, clock, self._limits.delay_ns)
        self._feeder = None if feeder is None else feeder(self._longest)
        wake = self._watchdog.wake_if_parked
        work = WorkBrackets(clock, self._lanes.busy_here, lambda: self._open_lane(THREAD))
        self.turns = ThreadTurns(clock, self._open_lane, wake)
        """Gets turns and callbacks from the hooks of probes."""
        self.loops = RunningLoops(
            self._lanes, self._observer, self.turns, clock=clock, wake=wake, delay_ns=self._limits.delay_ns
        )
        """Gets the loops that have asyncio's timers."""
        self.listener = PortableScopes(work, self._lanes, self._observer, wake)
        """Gets scenes and work from `scopes`."""

    def _longest(self) -> tuple[str, str, int] | None:
        """Thread, kind of loop and length in ns of the longest turn that is not over, less the time that
        `expect` granted. None: no loop is in a turn."""
        now_ns, found = self._clock(), None
        for lane in (one.lane for one in self._lanes.watched):
            ongoing, identity = lane.look(), lane.identity
            if ongoing is None or lane.closed_ns is not None or identity.loop_kind == THREAD:
                continue
            ns = now_ns - ongoing.begin_ns - lane.allowance(ongoing.epoch)
            if found is None or ns > found[2]:
                found = (identity.thread_name, identity.loop_kind, ns)
        return found

    def start(self) -> None:
        """Begins to watch. Idempotent. RuntimeError where the system gives no thread."""
        if not self._running:
            self._watchdog.start()
            self._collections.start()
            if self._feeder is not None:
                self._feeder.start()
            self._running = self.loops.are_watched = True

    def stop(self) -> None:
        """Ends watching, joins the watchdog and takes every bracket back. Idempotent."""
        if not self._running:
            return
        self._running = self.loops.are_watched = False
        self.turns.stop()
        self.loops.end()
        self._watchdog.stop()
        if self._feeder is not None:
            self._feeder.stop()
        self._collections.stop()
        self.wake()

    def rest(self, patience_s: float) -> bool:  # noqa: ARG002 - it waits for nothing but the GIL
        """Ends the watchdog's thread; lanes and open stalls stay."""
        return self._watchdog.stop()

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

    def read(self) -> Sequence[StallEvidence]:
        """Stalls that ended or became an ANR since the last call."""
        taken: list[StallEvidence] = []
        while self._news:
            taken.append(self._news.popleft())
        return taken

    def release(self, evidence: StallEvidence) -> None:
        """It is stored: a hang that is over need not be left behind any more."""
        if evidence.end_ns is not None:
            self._hangs.forget(evidence.serial)

    def stalls_ended(self) -> int:
        """See protocols.engine.Backend."""
        return self._observer.counters["stalls"] + sum(len(one.lane.ended) for one in self._lanes.watched)

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
            **self._hangs.counts(),
        }

    def set_facts(self, facts: dict[str, Any]) -> bool:
        """These go beside the hangs that are left from now on; False where none are."""
        self._hangs.facts = facts
        return self.file is not None

    def discard(self) -> None:
        """Removes the file of hangs: all of them are stored."""
        self._hangs.forget()

    def let_go(self) -> None:
        """In a forked child: takes the brackets off the parent's loops, without its thread and locks."""
        if os.getpid() == self._pid:
            return
        self._running = self.loops.are_watched = False
        self._hangs.let_go()
        self.loops.let_go()
        self._collections.stop()

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
