"""Named pieces of work on a thread: what `loopcanary.watch` brackets."""

from __future__ import annotations

import threading
from collections.abc import Callable

from loopcanary.portable.lane import Lane


class _OpenWorkHere(threading.local):
    """The work of one thread."""

    depth = 0
    lane: Lane | None = None
    """The lane that times it."""
    own: Lane | None = None
    """The thread's own lane for work outside loops; opened once."""
    begin_ns = 0
    name = ""
    around: object = None
    """What the loop's lane said was going on."""


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
