"""Tk's input and idle work."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from loopcanary.probes.event_stamps import EventStamps

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopcanary.protocols.tracing import IdleTrace, InputTrace, Tracers

_EVENTS = {
    2: "<Key>",
    3: "<KeyRelease>",
    4: "<Button>",
    5: "<ButtonRelease>",
    6: "<Motion>",
    38: "<MouseWheel>",
}
_BUTTONS = (4, 5)


def event_name(kind: int, button: int) -> str:
    """As bindings write it; empty: no input."""
    name = _EVENTS.get(kind, "")
    return name if not button or kind not in _BUTTONS else f"{name[:-1]}-{button}>"


class TkTraces:
    """Hands on what the C functions report; nothing is raised."""

    def __init__(self, scene: Callable[[], str | None]) -> None:
        """`scene`: of the calling thread's window in front."""
        self._scene = scene
        self._tracers: Tracers | None = None
        self._input: InputTrace | None = None
        self._idle: IdleTrace | None = None
        self._stamps = EventStamps()

    def use(self, tracers: Tracers) -> None:
        """Input and idle work are reported to them from now on."""
        self._tracers = tracers

    def input(self, event: tuple[str | None, int, int, int], begin_ns: int, end_ns: int) -> None:
        """A user's event was handled by a command of the program. The event: path of the widget, X's type,
        button, and the time in ms as the event has it; 0: the program made it."""
        path, kind, button, time_ms = event
        if self._tracers is None or time_ms == 0 or kind not in _EVENTS:
            return
        if self._input is None:
            self._input = self._tracers.input("tk")
        name = event_name(kind, button)
        arrived_ns = self._stamps.arrived_ns(time_ms, begin_ns)
        self._input.handled(f"{path or '.'}: {name}", arrived_ns, begin_ns, end_ns, self._scene())

    def ran(self, function: object, begin_ns: int, end_ns: int) -> None:
        """An idle handler has run."""
        if self._tracers is None:
            return
        if self._idle is None:
            self._idle = self._tracers.idle("tk")
        name = getattr(function, "__qualname__", None) or type(function).__qualname__
        self._idle.ran(f"after_idle: {name}", begin_ns, end_ns)

    def after_idle(self, timing: Callable[[Any, Any], object]) -> Callable[[Any], object]:
        """A Misc.after_idle whose functions are timed and named as idle work: `timing(function, ran)` gives
        what is called in a function's place."""

        def make(original: Callable[..., Any]) -> object:
            @wraps(original)
            def after_idle(self: Any, func: Any, *args: Any) -> Any:
                timed = timing(func, ran) if callable(func) else func
                return original(self, timed, *args)

            return after_idle

        ran = self.ran
        return make
