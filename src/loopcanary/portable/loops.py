"""How the portable engine learns when an asyncio loop works and when it waits.

Where the loop's wait is a Python method, as in every loop of asyncio's own, it is bracketed: exact times, and
not one wake-up of an idle loop. Other loops (uvloop) get a ticker: a timer that says how late it ran, which
wakes an idle loop once per sample delay and sees no stall's first part, on average half a delay.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from loopcanary.portable.lane import Lane
from loopcanary.whose_exception import ours

if TYPE_CHECKING:
    from loopcanary.portable.lanes import Lanes
    from loopcanary.portable.turns import ThreadTurns
    from loopcanary.portable.watchdog import Observer, WatchedLane


_TIMER_GRAIN_NS = 2_000_000
"""Timers are due in whole milliseconds in most loops; so late is on time."""


class Bracket(Protocol):
    """Reports one loop to its lane."""

    def attach(self, *, on_own_thread: bool) -> None:
        """Begins. `on_own_thread`: called where the loop runs, and not beside it."""

    def detach(self) -> None:
        """Takes back what is still ours. Any thread."""


def selector_of(loop: Any) -> Any:
    """The loop's selector if its wait can be bracketed, else None. A proactor is one as well."""
    selector = getattr(loop, "_selector", None)
    if selector is None or not hasattr(selector, "__dict__"):
        return None
    # A loop with a selector and turns of its own (qasync) would show the bracket nothing.
    base_events = sys.modules.get("asyncio.base_events")
    own = getattr(getattr(base_events, "BaseEventLoop", None), "_run_once", None)
    runs_asyncio_turns = getattr(type(loop), "_run_once", None) is own and own is not None
    return selector if runs_asyncio_turns and callable(getattr(selector, "select", None)) else None


class SelectBracket:
    """Stamps the end and the begin of a turn around `selector.select`."""

    def __init__(self, lane: Lane, selector: Any, clock: Callable[[], int], wake: Callable[[], None]) -> None:
        self._lane = lane
        self._selector = selector
        self._clock = clock
        self._before = selector.__dict__.get("select")
        self._select = _bracketed(lane, selector.select, clock, wake)

    def attach(self, *, on_own_thread: bool) -> None:
        # Only the loop's own thread knows that it works now; from elsewhere, the next wait will show it.
        if on_own_thread:
            self._lane.begin(self._clock())
        self._selector.select = self._select

    def detach(self) -> None:
        # What others have put over it stays, and calls us still; a lane that is closed does no harm.
        if self._selector.__dict__.get("select") is not self._select:
            return
        if self._before is None:
            del self._selector.select
        else:
            self._selector.select = self._before


def _bracketed(
    lane: Lane, select: Callable[..., Any], clock: Callable[[], int], wake: Callable[[], None]
) -> Callable[..., Any]:
    threshold_ns = lane.threshold_ns

    def bracketed_select(timeout: float | None = None) -> Any:
        entered_ns = clock()
        try:
            lane.end(entered_ns)
        except ours():  # the failure is ours, and the loop must go on
            lane.faults += 1
        events = select(timeout)
        try:
            now_ns = clock()
            if now_ns - entered_ns > threshold_ns:
                now_ns = _begin_of_turn(entered_ns, timeout, now_ns, threshold_ns)
            lane.begin(now_ns)
            wake()
        except ours():  # as above
            lane.faults += 1
        return events

    return bracketed_select


def _begin_of_turn(entered_ns: int, timeout: float | None, now_ns: int, threshold_ns: int) -> int:
    """When the wait was over: now, or long ago, where it was to return and could not.

    What came after that was no waiting, but another thread with the GIL, or a host that did not run this
    one.
    """
    if timeout is None:
        return now_ns
    due_ns = entered_ns + int(max(0.0, timeout) * 1e9)
    return due_ns if now_ns - due_ns > threshold_ns else now_ns


class Ticker:
    """A timer on the loop that reschedules itself. Its lane is busy from when the timer is due."""

    def __init__(
        self, lane: Lane, loop: Any, clock: Callable[[], int], wake: Callable[[], None], period_ns: int
    ) -> None:
        self._lane = lane
        self._loop = loop
        self._clock = clock
        self._wake = wake
        self._period_ns = period_ns
        self._timer: Any = None
        self._detached = False

    def attach(self, *, on_own_thread: bool) -> None:
        if on_own_thread:
            self._arm()
        else:
            self._loop.call_soon_threadsafe(self._arm)

    def detach(self) -> None:
        self._detached = True
        timer = self._timer
        if timer is not None:
            timer.cancel()

    def _arm(self) -> None:
        if self._detached or self._loop.is_closed():
            return
        self._timer = self._loop.call_later(self._period_ns / 1e9, self._tick)
        self._lane.begin(self._clock() + self._period_ns)
        self._wake()

    def _tick(self) -> None:
        try:
            now_ns = self._clock()
            on_time = now_ns - self._lane.begin_ns < _TIMER_GRAIN_NS
            self._lane.end(self._lane.begin_ns if on_time else now_ns)
            self._arm()
        except ours():  # an exception would reach the program's handler of loop errors
            self._lane.faults += 1


class _RunningLoop(NamedTuple):
    """A loop that runs."""

    loop: Any
    """Kept, so that no other can get its id."""
    bracket: Bracket
    watched: WatchedLane
    is_entered: bool
    """Whether the turns of the thread know the loop."""


class RunningLoops:
    """Those of one engine."""

    def __init__(
        self,
        lanes: Lanes,
        observer: Observer,
        turns: ThreadTurns,
        *,
        clock: Callable[[], int],
        wake: Callable[[], None],
        delay_ns: int,
    ) -> None:
        """`wake`: the watchdog, where it is parked; `delay_ns`: until its first sample."""
        self.are_watched = False
        self._lanes = lanes
        self._observer = observer
        self._turns = turns
        self._clock = clock
        self._wake = wake
        self._delay_ns = delay_ns
        self._brackets: dict[int, _RunningLoop] = {}

    def started(self, loop: Any, thread_ident: int, kind: str | None = None) -> None:
        """A loop runs in a thread, or is about to. `kind`: what reports call it; None: found out.

        Called on that thread before the loop's first turn, or from any other for a loop that runs.
        """
        if not self.are_watched or id(loop) in self._brackets:
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
                self._turns.enter(None if selector is None else watched.lane)
            bracket.attach(on_own_thread=is_here)
            self._wake()

    def stopped(self, loop: Any) -> None:
        """The loop runs no more. On its thread."""
        running = self._brackets.pop(id(loop), None)
        if running is None:
            return
        running.bracket.detach()
        now_ns = self._clock()
        running.watched.lane.end(now_ns)
        running.watched.lane.close(now_ns)
        if running.is_entered:
            self._turns.leave()

    def end(self) -> None:
        """Takes every bracket back."""
        while self._brackets:
            _, running = self._brackets.popitem()
            running.bracket.detach()
            running.watched.lane.closed_ns = self._clock()

    def let_go(self) -> None:
        """In a forked child: takes the brackets off the parent's loops, whose lanes stay as they are."""
        for running in self._brackets.values():
            running.bracket.detach()
        self._brackets = {}

    def _bracket(self, lane: Lane, loop: Any, selector: Any) -> Bracket:
        if selector is not None:
            return SelectBracket(lane, selector, self._clock, self._wake)
        return Ticker(lane, loop, self._clock, self._wake, self._delay_ns)
