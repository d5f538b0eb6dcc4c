"""Loops that run: each has its lane and its bracket, until it runs no more."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from loopcanary.portable.loop import Bracket, SelectBracket, Ticker, selector_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopcanary.portable.lane import Lane
    from loopcanary.portable.lanes import Lanes
    from loopcanary.portable.observer import Observer, WatchedLane
    from loopcanary.portable.turns import ThreadTurns


class _RunningLoop(NamedTuple):
    """A loop that runs."""

    loop: Any
    """Kept, so that no other can get its id."""
    bracket: Bracket
    watched: WatchedLane
    is_entered: bool
    """Whether the turns of its thread have it."""


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
