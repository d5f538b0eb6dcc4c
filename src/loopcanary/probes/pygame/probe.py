"""The pygame probe: a game's frames from flip to flip, of pygame and pygame-ce.

The functions of pygame that show a frame, look for events or wait get stand-ins, in their modules and
wherever a module of the program has taken them by name. They report to `beat`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from loopcanary.probes import PatchingProbe
from loopcanary.probes.pygame.beat import FRAME, KIND, Beat
from loopcanary.probes.pygame.calls import GameCalls, StandIn
from loopcanary.probes.pygame.clock import clock_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopcanary.protocols.tracing import Tracers

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
        self._stands: list[tuple[dict[str, Any], str, Any, Any]] = []
        """Namespace, name, what was there, what is there now."""

    def use_tracers(self, tracers: Tracers) -> None:
        """Frames and input are reported to these."""
        self._beat.tracers = tracers

    def _take_back(self) -> None:
        stands, self._stands = self._stands, []
        for namespace, name, original, standing in stands:
            if namespace.get(name) is standing:
                namespace[name] = original
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

    def _put(self, stands: dict[int, tuple[Any, Any]]) -> None:
        """Into every module that has one of the originals: `from pygame.display import flip` may have come
        before us."""
        for module in list(sys.modules.values()):
            namespace = getattr(module, "__dict__", None)
            if type(namespace) is not dict:
                continue
            for name, value in list(namespace.items()):
                found = stands.get(id(value))
                if found is not None and found[0] is value:
                    namespace[name] = found[1]
                    self._stands.append((namespace, name, value, found[1]))

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
            except Exception:  # noqa: BLE001 - a name is not worth a game
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
    except Exception:  # noqa: BLE001 - no window, no screen
        return None
    return float(hertz) if isinstance(hertz, (int, float)) and hertz > 0 else None
