"""Named pieces of work on a thread: what `loopcanary.watch` brackets."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from loopcanary.portable.lane import Lane

if TYPE_CHECKING:
    from contextvars import ContextVar

    from loopcanary.portable.lanes import Lanes
    from loopcanary.portable.watchdog import Observer


class _OpenWorkHere(threading.local):
    """The work of one thread."""

    depth = 0
    lane: Lane | None = None
    own: Lane | None = None
    """The thread's own lane for work outside loops; opened once."""
    begin_ns = 0
    name = ""
    around: object = None
    """The work that the loop's lane said was going on."""


class WorkBrackets:
    """Times work as a callback: the outermost of a thread, with all that is nested in it.

    Work inside a turn of a watched loop has no time of its own either: it gives the turn its name.
    Called on the working thread.
    """

    def __init__(
        self,
        clock: Callable[[], int],
        busy_lane: Callable[[], Lane | None],
        open_lane: Callable[[], Lane | None],
    ) -> None:
        self._clock = clock
        self._busy_lane = busy_lane
        self._open_lane = open_lane
        self._here = _OpenWorkHere()

    def begin(self, name: str) -> bool:
        """Work begins. Whether it is timed by itself."""
        here = self._here
        here.depth += 1
        if here.depth > 1:
            return False
        here.name = name
        here.begin_ns = self._clock()
        here.lane = self._busy_lane()
        if here.lane is None:
            if here.own is None or here.own.closed_ns is not None:
                here.own = self._open_lane()
            here.lane = here.own
            if here.lane is not None:
                here.lane.begin(here.begin_ns)
        if here.lane is not None:
            here.around = here.lane.work(here.lane.epoch)
            here.lane.name_work(name)
        return here.lane is not None and here.lane is here.own

    def end(self) -> None:
        """The work ends that began last."""
        here = self._here
        if here.depth == 0:
            return
        here.depth -= 1
        if here.depth or here.lane is None:
            return
        now_ns, lane, here.lane = self._clock(), here.lane, None
        if lane is here.own:
            lane.end(now_ns)
            return
        around, here.around = here.around, None
        lane.note_work(here.name, max(0, now_ns - here.begin_ns), around)


class PortableScopes:
    """Implements protocols.engine.ScopeListener."""

    def __init__(
        self, work: WorkBrackets, lanes: Lanes, observer: Observer, wake: Callable[[], None]
    ) -> None:
        """`wake`: the watchdog, where it is parked."""
        self._work = work
        self._lanes = lanes
        self._observer = observer
        self._wake = wake

    def work_begin(self, name: str) -> bool:
        """A named piece of work begins on this thread: a part of what the thread is in, or timed alone.

        Gives a token for `work_end`, true where it is timed alone.
        """
        is_alone = self._work.begin(name)
        self._wake()
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

    def use_scenes(self, variable: ContextVar[Any]) -> None:
        """Samples read the scene of the callback's context."""
        self._observer.scenes = variable
