"""How the portable engine learns when an asyncio loop works and when it waits.

Where the loop's wait is a Python method, as in every loop of asyncio's own, it is bracketed: exact times, and
not one wake-up of an idle loop. Other loops (uvloop) get a ticker: a timer that says how late it ran, which
wakes an idle loop once per sample delay and sees no stall's first part, on average half a delay.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

from loopcanary.portable.lane import Lane

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
        """Puts the bracket around the wait."""
        # Only the loop's own thread knows that it works now; from elsewhere, the next wait will show it.
        if on_own_thread:
            self._lane.begin(self._clock())
        self._selector.select = self._select

    def detach(self) -> None:
        """Gives the wait back as it was found."""
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
        except Exception:  # noqa: BLE001 - the failure is ours, and the loop must go on
            lane.faults += 1
        events = select(timeout)
        try:
            now_ns = clock()
            if now_ns - entered_ns > threshold_ns:
                now_ns = _begin_of_turn(entered_ns, timeout, now_ns, threshold_ns)
            lane.begin(now_ns)
            wake()
        except Exception:  # noqa: BLE001 - as above
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
        """Sets the first timer."""
        if on_own_thread:
            self._arm()
        else:
            self._loop.call_soon_threadsafe(self._arm)

    def detach(self) -> None:
        """Sets no more timers."""
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
        except Exception:  # noqa: BLE001 - an exception would reach the program's handler of loop errors
            self._lane.faults += 1
