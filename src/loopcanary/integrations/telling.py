"""How the files of this part report to the engine: scenes, requests, jobs. No error of ours gets out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from loopcanary.protocols.tracing import Tracers

UNKNOWN = "?"
METHODS = frozenset(
    {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "QUERY", "WS"}
)
"""A method is the client's text: undefined ones share one name. WS: a web socket."""


class Scopes(Protocol):
    """What the engine offers for work: `loopcanary.engine.scopes`."""

    def enter_scene(self, name: str) -> None:
        """The scene from here on."""

    def keep_scene(self) -> AbstractContextManager[object]:
        """A block that ends the scenes entered in it."""

    def current_scene(self) -> str | None:
        """The scene that the calling work is in."""

    def back_to_scene(self, before: str | None) -> None:
        """The scene is again what it was."""

    def watch_for(self, name: str, threshold_ns: int) -> AbstractContextManager[object]:
        """A block that is a piece of work."""


def _nothing() -> None:
    """The default listener."""


class Telling:
    """The engine's ear. Any thread."""

    def __init__(
        self,
        scopes: Scopes,
        begins: Callable[[], object],
        tracers: Callable[[], Tracers],
        *,
        request_threshold_ns: int,
        task_threshold_ns: int,
        answers_elsewhere: Callable[[int], object] | None = None,
        ends: Callable[[], object] = _nothing,
    ) -> None:
        """`begins` is called, cheaply, when the program is at work; `ends` when the process is about to end
        without Python's own end. `tracers` are made when they are first asked for.
        `answers_elsewhere(descriptor)`: the engine leaves this connection's answers to the caller; None: it
        times none."""
        self.ends = ends
        self.answers_elsewhere = answers_elsewhere
        self._scopes = scopes
        self._begins = begins
        self._request_ns = request_threshold_ns
        self._task_ns = task_threshold_ns
        self.keep_scene = scopes.keep_scene
        self.scene_now = scopes.current_scene
        self.back_to_scene = scopes.back_to_scene
        self.enter_scene = scopes.enter_scene
        self.tracers = tracers

    def scene(self, name_of: Callable[..., str | None], *facts: Any) -> None:
        """The route is found: `name_of(*facts)` is the scene. The facts are the library's objects: if another
        version has other ones, there is no scene."""
        try:
            name = name_of(*facts)
        except Exception:  # noqa: BLE001 - other versions of other people's objects
            return
        if name:
            self.enter_scene(name)

    def request(self, name: str) -> AbstractContextManager[object]:
        """A block that is a request on a thread of its own."""
        return self._work(name, self._request_ns)

    def task(self, name: str) -> AbstractContextManager[object]:
        """A block that is a job of a queue."""
        return self._work(name, self._task_ns)

    def _work(self, name: str, threshold_ns: int) -> AbstractContextManager[object]:
        if in_greenlets():
            return self._scopes.keep_scene()
        self._begins()
        return self._scopes.watch_for(name, threshold_ns)


def in_greenlets() -> bool:
    """Whether threads are greenlets here: a request then waits without its thread, and the hub's loop is
    watched."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("threading"):
        return True
    patcher = sys.modules.get("eventlet.patcher")
    return patcher is not None and bool(patcher.is_monkey_patched("thread"))


def method_word(method: object) -> str:
    """The method, run in a scene."""
    return method if isinstance(method, str) and method in METHODS else UNKNOWN


_NAMES_MAX = 4096
_names: dict[tuple[object, str], str] = {}
known_name = _names.get
"""Of a method and a route: what `route_name` has given, None where it has not."""


def route_name(method: object, route: str) -> str:
    """Gives `GET /orders/{id}`. Names are kept, so that most requests make none."""
    name = _names.get((method, route))
    if name is None:
        word = method_word(method)
        name = f"{word} {route}"
        if word is not UNKNOWN and len(_names) < _NAMES_MAX:
            _names[method, route] = name
    return name
