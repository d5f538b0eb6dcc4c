"""The pygame probe: a game's frames from flip to flip, of pygame and pygame-ce.

The functions of pygame that show a frame, look for events or wait get stand-ins, in their modules and
wherever a module of the program has taken them by name. What the library's function is given, gives and
raises is as if it were called itself.

A game has no loop of its own that could be hooked: its main thread draws, flips, asks for events, waits. What
lies between two of these calls is work: a callback called "frame". The flip itself, a wait, and the look for
events are the loop's: while a game looks for events its window answers, however long it draws nothing.

One thread is watched, the one that flips. What happens in each frame is in the stand-ins; the beat is called
only where there is something to report. A frame comes after a wait, when none of our code is in the
processor's cache: each line of Python would cost several times what it costs in a loop.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial, wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from loopcanary.probes import PatchingProbe, loaded
from loopcanary.thread_frames import thread_frames
from loopcanary.whose_exception import ours

if TYPE_CHECKING:
    from loopcanary.protocols.loops import LoopHooks
    from loopcanary.protocols.tracing import FrameTrace, InputTrace, Tracers


def clock_type(real: Any, ticking: Callable[[Any], Any]) -> type:
    """A type that makes, for the program, what another makes.

    Args:
        real: The other; its instances count as the type's own.
        ticking: Makes what takes the place of a method that waits for the next frame (GameCalls, role
            "tick").
    """

    class Same(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real) or type.__instancecheck__(cls, instance)

        def __repr__(cls) -> str:
            return repr(real)

    class Clock(metaclass=Same):
        __slots__ = ("_real",)
        __doc__ = real.__doc__

        tick = ticking(real.tick)
        tick_busy_loop = ticking(real.tick_busy_loop)

        def __init__(self) -> None:
            self._real = real()

        def __getattr__(self, name: str) -> Any:
            if name == "_real":  # never made: __new__ was called alone
                raise AttributeError(name)
            return getattr(self._real, name)

        def __repr__(self) -> str:
            return repr(self._real)

    Clock.__module__ = real.__module__
    Clock.__qualname__ = real.__qualname__
    return Clock


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
    """The calls of one game. One thread is watched: the first that shows a frame, until `over` or its end."""

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
        """Sets the beat whose methods are called for the rest."""
        self._beat = beat

    def on_shown(self, function: Callable[[int], object] | None) -> None:
        """Sets the function that is called with the time after each frame."""
        self._shown = function

    def on_input(self, types: Collection[int]) -> None:
        """Sets the types of events that `looked` gets."""
        self._input = types

    def is_watching(self) -> bool:
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
        except ours():  # ours: the game goes on
            return None


def _is_alive(ident: int) -> bool:
    # threading does not know every thread. Not bound: this frame is among them, and such a cycle keeps all
    # threads' variables alive.
    return ident in (thread_frames() or (ident,))


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


# Module, function, and its role (GameCalls.stand_in).
_CALLS = (
    ("pygame.display", "flip", "flip"),
    ("pygame.display", "update", "flip"),
    ("pygame.display", "message_box", "modal"),
    ("pygame.event", "get", "look"),
    ("pygame.event", "poll", "look"),
    ("pygame.event", "pump", "look"),
    ("pygame.event", "wait", "await"),
    ("pygame.fastevent", "get", "look"),
    ("pygame.fastevent", "poll", "look"),
    ("pygame.fastevent", "pump", "look"),
    ("pygame.fastevent", "wait", "await"),
    ("pygame.time", "wait", "wait"),
    ("pygame.time", "delay", "wait"),
)
_POSTS = (("pygame.event", "post"), ("pygame.fastevent", "post"))
_CLEARS = (("pygame.event", "clear"),)
_ENDS = (("pygame", "quit"), ("pygame.base", "quit"), ("pygame.display", "quit"))
_INPUT = (
    "KEYDOWN KEYUP TEXTINPUT MOUSEBUTTONDOWN MOUSEBUTTONUP MOUSEWHEEL FINGERDOWN FINGERUP "
    "JOYBUTTONDOWN JOYBUTTONUP JOYHATMOTION CONTROLLERBUTTONDOWN CONTROLLERBUTTONUP DROPFILE"
)
"""Input that a person waits for an answer to. Not motion: there is always more."""


class PygameProbe(PatchingProbe):
    """Watches the thread that flips."""

    kind = KIND

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._calls = GameCalls(self._engine.LoopHooks(KIND, self._loop_seen), FRAME)
        self._beat = Beat(
            self._calls,
            refresh_hz=_screen_refresh_hz,
            input_types=lambda: self._input_types,
            event_name=self._event_name,
            contain=self._contain,
        )
        self._calls.tell(self._beat)
        self._input_types: frozenset[int] = frozenset()
        self._names: dict[int, str] = {}
        self._sleeps: list[int] = []

    def use_tracers(self, tracers: Tracers) -> None:
        """Frames and input are reported to these."""
        self._beat.tracers = tracers

    def _take_back(self) -> None:
        super()._take_back()
        while self._sleeps:
            self._engine.unhook_sleeps(self._sleeps.pop())
        self._beat.over()

    def notes(self) -> Sequence[str]:
        if "pygame" not in sys.modules:
            return ()
        version = getattr(sys.modules.get("pygame.version"), "ver", "?")
        return (f"pygame {version}: frames of pygame.display; not those of Window.flip and Renderer.present",)

    # ---- patching -------------------------------------------------------------------------------

    def _patch(self) -> None:
        pygame = sys.modules["pygame"]
        self._input_types = frozenset(
            kind for kind in (getattr(pygame, name, None) for name in _INPUT.split()) if isinstance(kind, int)
        )
        stands: dict[int, tuple[Any, Any]] = {}

        def replace(module: str, name: str, make: Callable[[Any], Any]) -> None:
            original = getattr(sys.modules.get(module), name, None)
            if callable(original) and id(original) not in stands:
                stands[id(original)] = original, make(original)

        for module, name, role in _CALLS:
            replace(module, name, partial(self._calling, role))
        for module, name in _POSTS:
            replace(module, name, self._posting)
        for module, name in _CLEARS:
            replace(module, name, partial(self._before, self._beat.cleared))
        for module, name in _ENDS:
            replace(module, name, partial(self._before, self._beat.over))
        replace("pygame.time", "Clock", lambda original: clock_type(original, partial(self._calling, "tick")))
        self._put(stands)
        self._hook_sleeps()

    def _hook_sleeps(self) -> None:
        """SDL sleeps without the GIL, and pygame gets that back after it: a wait for the GIL is no more part
        of the wait for the next frame, but of the turn that begins when the sleep is over."""
        hook = getattr(self._engine, "hook_sleeps", None)
        if hook is not None:  # the portable engine has none
            self._sleeps += [at for at in loaded("/libSDL").values() if hook(at)]

    def _put(self, stands: dict[int, tuple[Any, Any]]) -> None:
        """Into every module that has one of the originals: `from pygame.display import flip` may have come
        before us."""
        for module in list(sys.modules.values()):
            if type(module) is not ModuleType:
                continue
            for name, value in list(vars(module).items()):
                found = stands.get(id(value))
                if found is not None and found[0] is value:
                    self._patches.lay(module, name, found[1])

    def _calling(self, role: str, original: Any) -> Any:
        return self._calls.stand_in(original, role)

    def _posting(self, original: Any) -> Any:
        posted = self._beat.posted

        def stand_in(*args: Any, **names: Any) -> Any:
            result = original(*args, **names)
            kind = getattr(args[0] if args else None, "type", None)
            if result is not False and isinstance(kind, int):
                posted(kind)
            return result

        return _alike(stand_in, original)

    def _before(self, tell: Callable[[], None], original: Any) -> Any:
        def stand_in(*args: Any, **names: Any) -> Any:
            tell()
            return original(*args, **names)

        return _alike(stand_in, original)

    def _event_name(self, kind: int) -> str:
        name = self._names.get(kind)
        if name is None:
            try:
                name = str(sys.modules["pygame.event"].event_name(kind))
            except ours():  # a name is not worth a game
                name = f"event {kind}"
            if len(self._names) < 256:
                self._names[kind] = name
        return name


def _alike(stand_in: Any, original: Any) -> Any:
    """The stand-in under the original's name."""
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        value = getattr(original, attribute, None)
        if value is not None:
            setattr(stand_in, attribute, value)
    stand_in.__wrapped__ = original
    return StandIn(stand_in)


def _screen_refresh_hz() -> float | None:
    """What pygame-ce says of the screen; None where it says nothing (pygame, or no such screen)."""
    display = sys.modules.get("pygame.display")
    ask = getattr(display, "get_current_refresh_rate", None)
    try:
        hertz = ask() if ask is not None else None
    except ours():  # no window, no screen
        return None
    return float(hertz) if isinstance(hertz, (int, float)) and hertz > 0 else None
