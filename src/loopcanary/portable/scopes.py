"""Scenes and pieces of work, as `engine.scopes` reports them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import ContextVar

    from loopcanary.portable.lanes import Lanes
    from loopcanary.portable.observer import Observer
    from loopcanary.portable.work import WorkBrackets


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

    def use_scenes(self, variable: ContextVar[str | None]) -> None:
        """Samples read the scene of the callback's context."""
        self._observer.scenes = variable
