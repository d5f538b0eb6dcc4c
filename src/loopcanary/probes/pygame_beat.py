"""The beat of a game: what one flip after the other, its waits and its events tell.

A game has no loop of its own that could be hooked: its main thread draws, flips, asks for events, waits. What
lies between two of these calls is work: a callback called "frame". The flip itself, a wait, and the look for
events are the loop's: while a game looks for events its window answers, however long it draws nothing.

One thread is watched, the one that flips; calls of the others go through.
"""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from loopcanary.protocols import FrameTrace, InputTrace, Tracers

KIND = "pygame"
FRAME = "frame"
"""What the work between two of these calls is called."""
_REFRESH_LOOK_NS = 1_000_000_000
_WAITED_NS = 1_000_000
"""An event.wait() that took longer has slept: the event came at its end."""
_TICKS_WITHOUT_FLIP = 3
"""So many waits for the next frame in a row, and none shown: the game is paused."""
_PENDING_MAX = 64
_POSTED_MAX = 256


class Hooks(Protocol):
    """LoopHooks of the native engine."""

    def run_begin(self) -> None:
        """The loop begins to run on this thread."""

    def run_end(self) -> None:
        """It runs no more."""

    def wait_begin(self) -> None:
        """It is about to wait."""

    def wait_end(self) -> None:
        """The wait is over."""

    def work_begin(self, work: str) -> None:
        """A callback begins."""

    def work_end(self) -> None:
        """It ends."""


class Beat:
    """All methods but `posted` on any thread; those of the one that flips count. Nothing of ours gets out."""

    def __init__(
        self,
        hooks: Hooks,
        *,
        refresh_hz: Callable[[], float | None],
        is_input: Callable[[int], bool],
        event_name: Callable[[int], str],
        contain: Callable[[Callable[[], None]], object],
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`refresh_hz`: the screen's rate, None where it is not known; `is_input`: of an event's type.
        `contain` calls a function, and nothing that it raises gets out."""
        self._hooks = hooks
        self._screen_hz = refresh_hz
        self._is_input = is_input
        self._event_name = event_name
        self._contain = contain
        self._clock = clock
        self.tracers: Tracers | None = None
        self._ident: int | None = None
        self._frames: FrameTrace | None = None
        self._input: InputTrace | None = None
        self._refresh_hz = 60.0
        self._target_hz: Any = 0.0
        self._refresh_seen_ns = 0
        self._ticks = 0
        self._looked_ns = 0
        self._pending: list[tuple[str, int, int]] = []
        """Name, arrival, begin of the handling, of input that is being handled."""
        self._posted: dict[int, deque[int]] = {}

    # ---- what the stand-ins of pygame's functions call ----------------------------------------

    def flip(self, original: Callable[..., Any], args: tuple[Any, ...], names: dict[str, Any]) -> Any:
        """A frame is shown."""
        if self._ident != get_ident() and not self._begin():
            return original(*args, **names)
        hooks = self._hooks
        hooks.work_end()
        hooks.wait_begin()
        try:
            result = original(*args, **names)
        finally:
            hooks.wait_end()
            hooks.work_begin(FRAME)
        now_ns = self._clock()
        self._ticks = 0
        if self._frames is not None:
            self._frames.frame_drawn(now_ns)
            if now_ns - self._refresh_seen_ns > _REFRESH_LOOK_NS:
                self._refresh_seen_ns = now_ns
                self._contain(self._look_at_screen)
        if self._pending:
            self._handled(now_ns)
        return result

    def tick(self, original: Callable[..., Any], args: tuple[Any, ...], names: dict[str, Any]) -> Any:
        """The game waits for the time of its next frame (Clock.tick)."""
        if self._ident != get_ident():
            return original(*args, **names)
        target = args[0] if args else names.get("framerate", 0)
        if target != self._target_hz:
            self._target_hz = target
            self._contain(self._expect)
        hooks = self._hooks
        hooks.work_end()
        hooks.wait_begin()
        try:
            return original(*args, **names)
        finally:
            hooks.wait_end()
            hooks.work_begin(FRAME)
            self._ticks += 1
            if self._ticks >= _TICKS_WITHOUT_FLIP and self._frames is not None:
                # Nothing is drawn: the next frame's time begins here.
                self._frames.idle()
                self._frames.frame_drawn(self._clock())

    def wait(self, original: Callable[..., Any], args: tuple[Any, ...], names: dict[str, Any]) -> Any:
        """The game waits (time.wait, time.delay): a part of the frame, and no work."""
        if self._ident != get_ident():
            return original(*args, **names)
        return self._wait(original, args, names)

    def modal(self, original: Callable[..., Any], args: tuple[Any, ...], names: dict[str, Any]) -> Any:
        """Somebody else's loop runs (message_box): nothing is drawn meanwhile."""
        if self._ident != get_ident():
            return original(*args, **names)
        try:
            return self._wait(original, args, names)
        finally:
            if self._frames is not None:
                self._frames.idle()

    def look(self, original: Callable[..., Any], args: tuple[Any, ...], names: dict[str, Any]) -> Any:
        """The game looks for events (event.get, poll, pump)."""
        if self._ident != get_ident():
            return original(*args, **names)
        hooks, before_ns = self._hooks, self._clock()
        if self._pending:
            self._handled(before_ns)
        hooks.work_end()
        hooks.wait_begin()
        try:
            found = original(*args, **names)
        finally:
            hooks.wait_end()
            hooks.work_begin(FRAME)
        if found:
            self._contain(partial(self._looked, found, before_ns, self._looked_ns))
        else:
            self._looked_ns = before_ns
        return found

    def await_event(self, original: Callable[..., Any], args: tuple[Any, ...], names: dict[str, Any]) -> Any:
        """The game waits for an event (event.wait)."""
        if self._ident != get_ident():
            return original(*args, **names)
        before_ns = self._clock()
        if self._pending:
            self._handled(before_ns)
        found = self._wait(original, args, names)
        now_ns = self._clock()
        if self._frames is not None:
            self._frames.waited(before_ns, now_ns)
        since_ns = now_ns if now_ns - before_ns > _WAITED_NS else self._looked_ns
        self._contain(partial(self._looked, found, before_ns, since_ns))
        return found

    def posted(self, event_type: int) -> None:
        """The program itself has put an event into the queue. Any thread."""
        if self._ident is not None and self._is_input(event_type):
            self._posted.setdefault(event_type, deque(maxlen=_POSTED_MAX)).append(self._clock())

    def cleared(self) -> None:
        """The queue was emptied. Any thread."""
        self._posted.clear()

    def over(self) -> None:
        """The screen is gone (pygame.quit). On the watched thread its work ends."""
        if self._ident == get_ident():
            self._hooks.work_end()
            self._hooks.run_end()
        frames, self._frames, self._input, self._ident = self._frames, None, None, None
        self._pending = []
        self._posted.clear()
        if frames is not None:
            frames.close()

    # ---- inside -------------------------------------------------------------------------------

    def _begin(self) -> bool:
        """The first flip: from here on this thread is watched. False on any other thread."""
        if self._ident is not None:
            return False
        self._ident = get_ident()
        self._hooks.run_begin()
        self._looked_ns = self._clock()
        self._contain(self._trace)
        return True

    def _trace(self) -> None:
        if self.tracers is not None:
            self._frames = self.tracers.frames(KIND)
            self._input = self.tracers.input(KIND)

    def _wait(self, original: Callable[..., Any], args: tuple[Any, ...], names: dict[str, Any]) -> Any:
        hooks = self._hooks
        hooks.work_end()
        hooks.wait_begin()
        try:
            return original(*args, **names)
        finally:
            hooks.wait_end()
            hooks.work_begin(FRAME)

    def _look_at_screen(self) -> None:
        hertz = self._screen_hz()
        self._refresh_hz = hertz or 60.0
        self._expect()

    def _expect(self) -> None:
        """A game that aims at 30 frames a second is in time with 30 on any faster screen."""
        target: object = self._target_hz
        hertz = self._refresh_hz
        if isinstance(target, (int, float)) and 0 < target < hertz:
            hertz = float(target)
        if self._frames is not None:
            self._frames.at_refresh_rate(hertz)

    def _looked(self, found: Any, before_ns: int, since_ns: int) -> None:
        """Events were taken from the queue. They came at `since_ns`, when the game last looked, or later."""
        now_ns = self._looked_ns = self._clock()
        if found is None or self._input is None:
            return
        events: Iterable[Any] = found if isinstance(found, list) else (found,)
        for event in events:
            kind = getattr(event, "type", None)
            if isinstance(kind, int) and self._is_input(kind) and len(self._pending) < _PENDING_MAX:
                posted = self._posted.get(kind)
                arrived_ns = posted.popleft() if posted else min(since_ns, now_ns)
                self._pending.append((self._event_name(kind), arrived_ns, max(before_ns, arrived_ns)))

    def _handled(self, now_ns: int) -> None:
        """What was taken from the queue has been dealt with: its frame was shown, or the game looks again."""
        pending, self._pending = self._pending, []
        if self._input is not None:
            for name, arrived_ns, begin_ns in pending:
                self._input.handled(name, arrived_ns, begin_ns, now_ns)
