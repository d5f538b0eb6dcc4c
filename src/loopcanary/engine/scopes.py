"""What a program may say about its own work: scene, watch, expect.

Each is a context manager that costs a few hundred nanoseconds, and nothing but a name where no engine
runs. None of them raises for anything of ours.
"""

from __future__ import annotations

from contextvars import ContextVar, Token

from loopcanary.engine.attachment import Ear
from loopcanary.model.scene import scene_name

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any, Self

    from loopcanary.protocols.engine import ScopeListener

_LONGEST_NS = (1 << 63) - 1

SCENE: ContextVar[Any] = ContextVar("loopcanary_scene", default=None)
"""See model.scene."""


def _duration_ns(duration: str | timedelta) -> int:
    if isinstance(duration, str):
        from loopcanary.model.units import parse_duration_ns

        ns = parse_duration_ns(duration)
    else:
        microseconds = duration.microseconds + 1_000_000 * (duration.seconds + 86_400 * duration.days)
        ns = microseconds * 1_000
    return min(max(0, ns), _LONGEST_NS)


class scene:  # noqa: N801 - reads as a statement: with loopcanary.scene("checkout")
    """Names where the program is: a screen, a route, a job. Stalls in the block carry the name.

    It is a context variable: it holds across awaits, and in tasks that the block starts.

    Args:
        name: any text; few different ones, since figures are kept for each.
        of_request: the name ends with the block in tasks that it started, too.
    """

    __slots__ = ("_held", "_is_of_request", "_name", "_token")

    def __init__(self, name: str, *, of_request: bool = False) -> None:
        self._name = str(name)
        self._is_of_request = of_request
        self._held: Any = None
        self._token: Token[Any] | None = None

    def __enter__(self) -> Self:
        self._held = [self._name, True] if self._is_of_request else self._name
        self._token = SCENE.set(self._held)
        listener = Ear.listener
        if listener is not None:
            listener.use_scenes(SCENE)
            listener.set_scene(self._name)
        return self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            SCENE.reset(self._token)
            _end(self._held)
        if Ear.listener is not None:
            Ear.listener.set_scene(current_scene())


held_scene = SCENE.get
"""What `back_to_scene` gets back to."""


def current_scene() -> str | None:
    """The scene of the calling context."""
    return scene_name(SCENE.get())


def _end(held: Any) -> None:
    if type(held) is list:
        held[1] = None


def enter_scene(name: str) -> None:
    """Sets the scene of a request from here on, until a `keep_scene` around it ends: for a router that has
    found the route. The context keeps the name. The working thread."""
    SCENE.set([name, True])
    listener = Ear.listener
    if listener is not None:
        if not Ear.knows_scenes:
            listener.use_scenes(SCENE)
            Ear.knows_scenes = True
        listener.set_scene(name)


def back_to_scene(before: Any) -> None:
    """The scene is again what `held_scene` was; the one until now is over, in tasks that it started, too."""
    held = SCENE.get()
    if held is not before:
        _end(held)
        SCENE.set(before)
        listener = Ear.listener
        if listener is not None:
            listener.set_scene(scene_name(before))


class keep_scene:  # noqa: N801 - as scene
    """A scene that is entered in the block ends with it."""

    __slots__ = ("_before",)

    def __init__(self) -> None:
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = SCENE.get()
        return self

    def __exit__(self, *_: object) -> None:
        back_to_scene(self._before)


class watch:  # noqa: N801 - as scene
    """Times a piece of work on any thread as a callback.

    Inside a callback of a loop, or inside other watched work, it is part of that and not timed by itself.

    Args:
        name: what reports call the work.
        threshold: the work is a stall when it takes longer: "2s", or a timedelta. No effect if it is shorter
            than the setting `threshold`, which is the default.

    Raises:
        ValueError: the threshold is no duration.
    """

    __slots__ = ("_listener", "_name", "_ns", "_token")

    def __init__(self, name: str, threshold: str | timedelta | None = None) -> None:
        self._name = str(name)
        self._ns = 0 if threshold is None else _duration_ns(threshold)
        self._token: Any = None
        self._listener: ScopeListener | None = None

    def __enter__(self) -> Self:
        self._listener = Ear.listener
        if self._listener is not None:
            self._token = self._listener.work_begin(self._name)
            if self._ns and self._token:
                self._listener.allow(self._ns)
        return self

    def __exit__(self, *_: object) -> None:
        if self._token is not None and self._listener is not None:
            self._listener.work_end(self._token)


class watch_for(watch):  # noqa: N801 - as scene
    """`watch` with a threshold in nanoseconds; scenes entered in the block end with it."""

    __slots__ = ("_before",)

    def __init__(self, name: str, threshold_ns: int) -> None:
        super().__init__(name)
        self._ns = threshold_ns
        self._before = keep_scene()

    def __enter__(self) -> Self:
        self._before.__enter__()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._before.__exit__(*error)


def allow_ns(duration_ns: int) -> None:
    """As `expect`."""
    if Ear.listener is not None:
        Ear.listener.allow(duration_ns)


class expect:  # noqa: N801 - as scene
    """Lets the running callback take longer than the threshold without being a stall.

    Holds for the callback in which the block is entered; what follows an await is another one.

    Args:
        duration: how long it may take: "2s", or a timedelta.

    Raises:
        ValueError: it is no duration.
    """

    __slots__ = ("_ns",)

    def __init__(self, duration: str | timedelta) -> None:
        self._ns = _duration_ns(duration)

    def __enter__(self) -> Self:
        allow_ns(self._ns)
        return self

    def __exit__(self, *_: object) -> None:
        """The grant stays until the callback ends."""
