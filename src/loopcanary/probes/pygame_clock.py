"""A stand-in for pygame.time.Clock: an immutable type that cannot be subclassed, and whose tick is a wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopcanary.probes.pygame_beat import Beat


def clock_type(real: Any, beat: Beat) -> type:
    """A type that makes, for the program, what `real` makes; instances of `real` count as its own."""

    class Same(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real) or type.__instancecheck__(cls, instance)

        def __repr__(cls) -> str:
            return repr(real)

    class Clock(metaclass=Same):
        __slots__ = ("_real", "_tick", "_tick_busy_loop")
        __doc__ = real.__doc__

        def __init__(self) -> None:
            self._real = real()
            self._tick = self._real.tick
            self._tick_busy_loop = self._real.tick_busy_loop

        def tick(self, *args: Any, **names: Any) -> Any:
            return beat.tick(self._tick, args, names)

        def tick_busy_loop(self, *args: Any, **names: Any) -> Any:
            return beat.tick(self._tick_busy_loop, args, names)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        def __repr__(self) -> str:
            return repr(self._real)

    Clock.tick.__doc__ = getattr(real.tick, "__doc__", None)
    Clock.tick_busy_loop.__doc__ = getattr(real.tick_busy_loop, "__doc__", None)
    Clock.__module__ = real.__module__
    Clock.__qualname__ = real.__qualname__
    return Clock
