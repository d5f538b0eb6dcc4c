"""A stand-in for pygame.time.Clock: an immutable type that cannot be subclassed, and whose tick is a wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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
