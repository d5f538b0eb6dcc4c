"""What a program may tell about its own work: scene, watch, expect.

Each is a context manager that costs a few hundred nanoseconds, and nothing but a name where no engine
runs. None of them raises for anything of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from datetime import timedelta
from types import ModuleType, TracebackType
from typing import Any

from loopcanary.model.units import parse_duration_ns

SCENE: ContextVar[str | None] = ContextVar("loopcanary_scene", default=None)


class _Engine:
    """What the scopes tell; set by the engine while it runs."""

    native: ModuleType | None = None
    begin_work: Callable[[str], Any] | None = None
    end_work: Callable[[Any], None] | None = None


def connect(
    native: ModuleType | None,
    begin_work: Callable[[str], Any] | None = None,
    end_work: Callable[[Any], None] | None = None,
) -> None:
    """The engine starts (or stops: all None)."""
    _Engine.native = native
    _Engine.begin_work = native.work_begin if native is not None else begin_work
    _Engine.end_work = native.work_end if native is not None else end_work


class scene:  # noqa: N801 - reads as a statement: with loopcanary.scene("checkout")
    """Where the user is: a screen, a route, a job. Stalls of the block's work carry the name, across
    awaits as well: it is a context variable."""

    __slots__ = ("_name", "_token")

    def __init__(self, name: str) -> None:
        self._name = str(name)
        self._token: Token[str | None] | None = None

    def __enter__(self) -> scene:
        self._token = SCENE.set(self._name)
        if _Engine.native is not None:
            _Engine.native.use_scenes(SCENE)
            _Engine.native.set_scene(self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            SCENE.reset(self._token)
        if _Engine.native is not None:
            _Engine.native.set_scene(SCENE.get())


class watch:  # noqa: N801 - as scene
    """A piece of work on any thread, timed as a callback: a stall where it takes longer than the threshold.
    Inside a callback of a loop it is a part of that one and not timed by itself."""

    __slots__ = ("_end", "_name", "_token")

    def __init__(self, name: str) -> None:
        self._name = str(name)
        self._token: Any = None
        self._end: Callable[[Any], None] | None = None

    def __enter__(self) -> watch:
        begin, self._end = _Engine.begin_work, _Engine.end_work
        if begin is not None:
            self._token = begin(self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None and self._end is not None:
            self._end(self._token)


class expect:  # noqa: N801 - as scene
    """The running callback may take so long ("2s", or a timedelta): it is no stall before.

    The grant is for the callback in which the block is entered; what follows an await is another one.
    Raises ValueError for text that is no duration.
    """

    __slots__ = ("_ns",)

    def __init__(self, duration: str | timedelta) -> None:
        is_delta = isinstance(duration, timedelta)
        self._ns = duration // timedelta(microseconds=1) * 1_000 if is_delta else parse_duration_ns(duration)

    def __enter__(self) -> expect:
        if _Engine.native is not None:
            _Engine.native.allow(max(0, self._ns))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The grant stays until the callback ends."""
