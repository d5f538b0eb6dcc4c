"""The beat of a game: what becomes of its flips, waits and events.

A game has no loop of its own that could be hooked: its main thread draws, flips, asks for events, waits. What
lies between two of these calls is work: a callback called "frame". The flip itself, a wait, and the look for
events are the loop's: while a game looks for events its window answers, however long it draws nothing.

One thread is watched, the one that flips. What each frame does is in `calls`; what is here is
called only where there is something to report. A frame comes after a wait, when none of our code is in
the processor's cache: each line of Python would cost several times what it costs in a loop.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from loopcanary.probes.pygame.calls import GameCalls

if TYPE_CHECKING:
    from loopcanary.protocols.tracing import FrameTrace, InputTrace, Tracers

KIND = "pygame"
FRAME = "frame"
"""What the work between two of these calls is called."""
_PENDING_MAX = 64
_POSTED_MAX = 256


class Beat:
    """All on the thread that flips, but for `posted`, `cleared` and `over`. Nothing of ours gets out.

    Times are those of time.monotonic_ns().
    """

    def __init__(
        self,
        calls: GameCalls,
        *,
        refresh_hz: Callable[[], float | None],
        input_types: Callable[[], Collection[int]],
        event_name: Callable[[int], str],
        contain: Callable[[Callable[[], None]], object],
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Hears of nothing before `calls` knows of it.

        Args:
            calls: The game's, which call this.
            refresh_hz: The screen's rate; None where it is not known.
            input_types: Numbers of the events that people make.
            event_name: Of such a number.
            contain: Calls a function, and nothing that it raises gets out.
            clock: As time.monotonic_ns().
        """
        self._calls = calls
        self._screen_hz = refresh_hz
        self._input_types = input_types
        self._event_name = event_name
        self._contain = contain
        self._clock = clock
        self.tracers: Tracers | None = None
        self._frames: FrameTrace | None = None
        self._input: InputTrace | None = None
        self._refresh_hz = 60.0
        self._target_hz: Any = 0.0
        self._pending: list[tuple[str, int, int]] = []
        """Name, arrival, begin of the handling, of input that is being handled."""
        self._posted: dict[int, deque[int]] = {}

    # ---- from the calls; see calls.GameCalls -----------------------------------------------------

    def began(self) -> None:
        """The first flip: from here on this thread is watched."""
        self._contain(self._trace)

    def look_at_screen(self) -> None:
        """Its refresh rate may have changed."""
        self._contain(self._ask_screen)

    def aims_at(self, rate: Any) -> None:
        """The game wants so many frames a second: what it gave to Clock.tick."""
        self._target_hz = rate
        self._contain(self._expect)

    def paused(self, now_ns: int) -> None:
        """Nothing is drawn: the next frame's time begins here."""
        if self._frames is not None:
            self._frames.idle()
            self._frames.frame_drawn(now_ns)

    def waited(self, begin_ns: int, end_ns: int) -> None:
        """The game waited for an event."""
        if self._frames is not None:
            self._frames.waited(begin_ns, end_ns)

    def modal_over(self) -> None:
        """Another loop ran (message_box): nothing was drawn meanwhile."""
        if self._frames is not None:
            self._frames.idle()

    def looked(self, found: Any, before_ns: int, since_ns: int, now_ns: int) -> bool:
        """Events were taken from the queue.

        Args:
            found: What pygame gave: an event, or some.
            before_ns: When it was asked.
            since_ns: When the game last looked: they came then, or later.
            now_ns: When it answered.

        Returns:
            Whether any of them is input, whose handling goes on.
        """
        self._contain(lambda: self._take(found, before_ns, min(since_ns, now_ns)))
        return bool(self._pending)

    def handled(self, now_ns: int) -> None:
        """What was taken from the queue has been dealt with: its frame was shown, or the game looks again."""
        pending, self._pending = self._pending, []
        if self._input is not None:
            for name, arrived_ns, begin_ns in pending:
                self._input.handled(name, arrived_ns, begin_ns, now_ns)

    # ---- from the other stand-ins -------------------------------------------------------------

    def posted(self, event_type: int) -> None:
        """The program itself has put an event into the queue. Any thread."""
        if self._calls.is_watching() and event_type in self._input_types():
            self._posted.setdefault(event_type, deque(maxlen=_POSTED_MAX)).append(self._clock())

    def cleared(self) -> None:
        """The queue was emptied. Any thread."""
        self._posted.clear()

    def over(self) -> None:
        """The screen is gone (pygame.quit). On the watched thread its work ends."""
        self._calls.over()
        frames, self._frames, self._input = self._frames, None, None
        self._pending = []
        self._posted.clear()
        if frames is not None:
            frames.close()

    # ---- inside -------------------------------------------------------------------------------

    def _trace(self) -> None:
        if self._frames is not None:
            self._frames.close()  # of a thread that has ended
        if self.tracers is not None:
            self._frames = self.tracers.frames(KIND)
            self._calls.on_shown(self._frames.frame_drawn)
            self._input = self.tracers.input(KIND)
            self._calls.on_input(self._input_types())

    def _ask_screen(self) -> None:
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

    def _take(self, found: Any, before_ns: int, since_ns: int) -> None:
        events: Iterable[Any] = found if isinstance(found, list) else (found,)
        types = self._input_types()
        for event in events:
            kind = getattr(event, "type", None)
            if isinstance(kind, int) and kind in types and len(self._pending) < _PENDING_MAX:
                posted = self._posted.get(kind)
                arrived_ns = posted.popleft() if posted else since_ns
                self._pending.append((self._event_name(kind), arrived_ns, max(before_ns, arrived_ns)))
