"""What a program may tell about its own work: scene, watch, expect.

Each is a context manager that costs a few hundred nanoseconds, and nothing but a name where no engine
runs. None of them raises for anything of ours.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from loopcanary.model.units import parse_duration_ns

if TYPE_CHECKING:
    from datetime import timedelta

_LONGEST_NS = (1 << 63) - 1

SCENE: ContextVar[str | None] = ContextVar("loopcanary_scene", default=None)


class Listener(Protocol):
    """Whom the scopes tell: the native module, or the portable engine. Called on the thread that works."""

    def work_begin(self, name: str, /) -> Any:
        """A piece of work begins; the token goes to work_end, None where there is nothing to end."""

    def work_end(self, token: Any, /) -> None:
        """The piece of work ends."""

    def set_scene(self, scene: str | None, /) -> None:
        """Where this thread's work is from now on."""

    def use_scenes(self, variable: ContextVar[str | None], /) -> None:
        """Scenes are used in this process: this variable holds them."""

    def allow(self, nanoseconds: int, /) -> None:
        """The running callback may take so long before it is a stall."""


class _Ear:
    """Who listens now; None while no engine runs."""

    listener: Listener | None = None


def connect(listener: Listener | None) -> None:
    """The engine starts, or stops (None)."""
    _Ear.listener = listener


class scene:  # noqa: N801 - reads as a statement: with loopcanary.scene("checkout")
    """Where the user is: a screen, a route, a job. Stalls of the block's work carry the name, across
    awaits as well: it is a context variable."""

    __slots__ = ("_name", "_token")

    def __init__(self, name: str) -> None:
        self._name = str(name)
        self._token: Token[str | None] | None = None

    def __enter__(self) -> Self:
        self._token = SCENE.set(self._name)
        listener = _Ear.listener
        if listener is not None:
            listener.use_scenes(SCENE)
            listener.set_scene(self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            SCENE.reset(self._token)
        if _Ear.listener is not None:
            _Ear.listener.set_scene(SCENE.get())


class watch:  # noqa: N801 - as scene
    """A piece of work on any thread, timed as a callback: a stall where it takes longer than the threshold.
    Inside a callback of a loop it is a part of that one and not timed by itself."""

    __slots__ = ("_listener", "_name", "_token")

    def __init__(self, name: str) -> None:
        self._name = str(name)
        self._token: Any = None
        self._listener: Listener | None = None

    def __enter__(self) -> Self:
        self._listener = _Ear.listener
        if self._listener is not None:
            self._token = self._listener.work_begin(self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None and self._listener is not None:
            self._listener.work_end(self._token)


class expect:  # noqa: N801 - as scene
    """The running callback may take so long ("2s", or a timedelta): it is no stall before.

    The grant is for the callback in which the block is entered; what follows an await is another one.
    Raises ValueError for text that is no duration.
    """

    __slots__ = ("_ns",)

    def __init__(self, duration: str | timedelta) -> None:
        if isinstance(duration, str):
            self._ns = parse_duration_ns(duration)
        else:
            microseconds = duration.microseconds + 1_000_000 * (duration.seconds + 86_400 * duration.days)
            self._ns = microseconds * 1_000

    def __enter__(self) -> Self:
        if _Ear.listener is not None:
            _Ear.listener.allow(min(max(0, self._ns), _LONGEST_NS))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The grant stays until the callback ends."""
