"""The calls by which a game's thread shows frames, looks for events and waits.

What the library's function is given, gives and raises is as if it were called itself.
"""

from __future__ import annotations

import threading
import time
from functools import wraps
from typing import TYPE_CHECKING, Any

from loopcanary.thread_frames import thread_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from loopcanary.protocols.loops import LoopHooks

_SCREEN_LOOK_NS = 1_000_000_000
_SLEPT_NS = 1_000_000
"""An "await" that took longer has slept: the event came at its end."""
_TICKS_WITHOUT_FRAME = 3
"""So many ticks in a row, and no frame shown: the game is paused."""


class StandIn(staticmethod):  # type: ignore[type-arg] # not subscriptable at run time
    """In the place of a C function: as an attribute of a class, too, it is called without the instance; it is
    copied and pickled by its name."""

    @property
    def __wrapped__(self) -> Any:
        return self.__func__.__wrapped__  # type: ignore[attr-defined] # set by functools.wraps

    def __reduce__(self) -> str:
        return self.__qualname__


class GameCalls:
    """Of one game. One thread is watched: the first that shows a frame, until `over` or its end."""

    def __init__(self, hooks: LoopHooks, work: str, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._hooks = hooks
        self._work = work
        self._clock = clock
        self._beat: Any = None
        self._shown: Callable[[int], object] | None = None
        self._input: Collection[int] = ()
        self._target: Any = 0
        self._thread = 0
        self._left = 0
        """A thread that is watched no more, and whose work has to be ended by itself."""
        self._looked_ns = self._screen_ns = 0
        self._ticks = 0
        self._is_pending = False

    def stand_in(self, function: Callable[..., Any], role: str) -> Callable[..., Any]:
        """What is called in a function's place.

        Args:
            function: pygame's.
            role: flip (shows a frame), look (takes events), await (waits for one), wait, modal (a dialog),
                tick (a method that waits for the next frame).
        """
        call: Callable[..., Any] = getattr(self, f"_{role}")
        if role == "tick":
            # Of a type whose instances hold the library's object as `_real`.
            @wraps(function)
            def tick(clock: Any, *args: Any, **names: Any) -> Any:
                return call(function, getattr(clock, "_real", clock), *args, **names)

            return tick

        @wraps(function)
        def stand_in(*args: Any, **names: Any) -> Any:
            return call(function, *args, **names)

        return StandIn(stand_in)

    def tell(self, beat: Any) -> None:
        """Whose methods are called for the rest."""
        self._beat = beat

    def on_shown(self, function: Callable[[int], object] | None) -> None:
        """Who is called with the time after each frame."""
        self._shown = function

    def on_input(self, types: Collection[int]) -> None:
        """The types of events that `looked` gets."""
        self._input = types

    def is_watching(self) -> bool:
        """Whether a thread's frames are watched."""
        if self._thread and not _is_alive(self._thread):
            self._thread, self._is_pending, self._input, self._shown = 0, False, (), None
        return self._thread != 0

    def over(self) -> None:
        """Nothing is watched any more; on the watched thread, its work ends."""
        if self._is_watched():
            self._end_work()
        else:
            self._left = self._thread
        self._thread, self._is_pending, self._input, self._shown = 0, False, (), None

    # ---- the calls ------------------------------------------------------------------------------

    def _flip(self, function: Callable[..., Any], *args: Any, **names: Any) -> Any:
        if not self._is_watched() and not self._begins():
            return function(*args, **names)
        result = self._wait_in(function, *args, **names)
        self._ticks = 0
        now_ns = self._clock()
        if self._shown is not None:
            self._tell(self._shown, now_ns)
            if now_ns - self._screen_ns > _SCREEN_LOOK_NS:
                self._screen_ns = now_ns
                self._tell_beat("look_at_screen")
        self._tell_handled(now_ns)
        return result

    def _wait(self, function: Callable[..., Any], *args: Any, **names: Any) -> Any:
        if not self._is_watched():
            return function(*args, **names)
        return self._wait_in(function, *args, **names)

    def _modal(self, function: Callable[..., Any], *args: Any, **names: Any) -> Any:
        if not self._is_watched():
            return function(*args, **names)
        try:
            return self._wait_in(function, *args, **names)
        finally:
            self._tell_beat("modal_over")

    def _look(self, function: Callable[..., Any], *args: Any, **names: Any) -> Any:
        if not self._is_watched():
            return function(*args, **names)
        begin_ns = self._clock()
        self._tell_handled(begin_ns)
        found = self._wait_in(function, *args, **names)
        if found:
            self._note_events(found, begin_ns, self._looked_ns)
        else:
            self._looked_ns = begin_ns
        return found

    def _await(self, function: Callable[..., Any], *args: Any, **names: Any) -> Any:
        if not self._is_watched():
            return function(*args, **names)
        begin_ns = self._clock()
        self._tell_handled(begin_ns)
        found = self._wait_in(function, *args, **names)
        now_ns = self._clock()
        self._tell_beat("waited", begin_ns, now_ns)
        self._note_events(found, begin_ns, now_ns if now_ns - begin_ns > _SLEPT_NS else self._looked_ns)
        return found

    def _tick(self, function: Callable[..., Any], clock: Any, *args: Any, **names: Any) -> Any:
        if not self._is_watched():
            return function(clock, *args, **names)
        self._tell(self._note_target, args[0] if args else names.get("framerate", 0))
        try:
            return self._wait_in(function, clock, *args, **names)
        finally:
            self._ticks += 1
            if self._ticks >= _TICKS_WITHOUT_FRAME and self._shown is not None:
                self._tell_beat("paused", self._clock())

    # ---- inside ---------------------------------------------------------------------------------

    def _is_watched(self) -> bool:
        own = threading.get_ident()
        if self._left == own:
            self._left = 0
            self._end_work()
        return self._thread == own

    def _begins(self) -> bool:
        """The first frame: from here on this thread is watched, unless another one is, and lives."""
        if self.is_watching():
            return False
        self._thread = threading.get_ident()
        self._hooks.run_begin()
        self._looked_ns = self._clock()
        self._tell_beat("began")
        return True

    def _wait_in(self, function: Callable[..., Any], *args: Any, **names: Any) -> Any:
        """Calls it as a wait."""
        self._hooks.work_end()
        self._hooks.wait_begin()
        try:
            return function(*args, **names)
        finally:
            if self._is_watched():
                self._hooks.wait_end()
                self._hooks.work_begin(self._work)

    def _end_work(self) -> None:
        self._hooks.work_end()
        self._hooks.run_end()

    def _note_target(self, target: Any) -> None:
        if target != self._target:
            self._target = target
            self._tell_beat("aims_at", target)

    def _note_events(self, found: Any, begin_ns: int, since_ns: int) -> None:
        """Events were taken from the queue. They came at `since_ns`, or later."""
        now_ns = self._looked_ns = self._clock()
        events = found if isinstance(found, list) else (found,)
        if self._input and any(getattr(event, "type", None) in self._input for event in events):
            self._is_pending |= bool(self._tell_beat("looked", found, begin_ns, since_ns, now_ns))

    def _tell_handled(self, now_ns: int) -> None:
        if self._is_pending:
            self._is_pending = False
            self._tell_beat("handled", now_ns)

    def _tell_beat(self, name: str, *args: Any) -> Any:
        beat = self._beat
        return None if beat is None else self._tell(getattr(beat, name), *args)

    @staticmethod
    def _tell(function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except Exception:  # noqa: BLE001 - ours: the game goes on
            return None


def _is_alive(ident: int) -> bool:
    # threading does not know every thread. Not bound: this frame is among them, and such a cycle keeps all
    # threads' variables alive.
    return ident in (thread_frames() or (ident,))
