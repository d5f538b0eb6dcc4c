"""How the files of this part report to the engine: scenes, requests, jobs. No error of ours gets out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
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


class ServingEngine(Protocol):
    """What the native engine offers servers whose answers it times, and ASGI frameworks: in
    native/probes/answers/hook.h, native/probes/asgi/route.h."""

    def asgi_root(self, function: object, /) -> object:
        """This coroutine function is all of a request's task."""

    def asgi_route(
        self,
        original: Callable[..., Any],
        around: Callable[..., Any],
        known: dict[Any, str],
        mounted: object,
        /,
    ) -> Callable[..., Any]:
        """A route's method: enters the scene and is the original, where nothing has to be put back; else
        `around`."""

    def answers_gate(
        self, original: Callable[..., Any], timed: Callable[[Any, Any, int], Any], /
    ) -> Callable[..., Any]:
        """Takes a method's place which handles a request: only those that are timed go to `timed`."""

    def start_ready(self) -> object:
        """The program's application object is made: a moment of its start, where that is recorded. In
        native/probes/start/start.h."""

    def answers_behind_tls(self) -> object:
        """Some connections have TLS, of which the engine can time none: one request of sixteen goes to
        `timed`, with -1 for its connection."""

    def answer_handled(self, fd: int, /) -> object:
        """The handling of this connection's request begins."""

    def answer_named(self, fd: int, name: str, /) -> object:
        """What the answer is called that is about to be sent."""


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
        engine: ServingEngine | None = None,
        ends: Callable[[], object] = _nothing,
    ) -> None:
        """`begins` is called, cheaply, when the program is at work; `ends` when the process is about to end
        without Python's own end. `tracers` are made when they are first asked for.
        `engine`: the native one, where it runs."""
        self.ends = ends
        self.engine = engine
        self._scopes = scopes
        self._begins = begins
        self._request_ns = request_threshold_ns
        self._task_ns = task_threshold_ns
        self.keep_scene = scopes.keep_scene
        self.scene_now = scopes.current_scene
        self.back_to_scene = scopes.back_to_scene
        self.enter_scene = scopes.enter_scene
        self.tracers = tracers

    def around_making(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A function, after which the program's application object is made."""
        if self.engine is None:
            return original
        is_ready = self.engine.start_ready

        def made(*args: Any, **kwargs: Any) -> Any:
            application = original(*args, **kwargs)
            is_ready()
            return application

        return made

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
known_names: dict[tuple[object, str], str] = {}
"""Of a method and a route: what `route_name` has given."""


def route_name(method: object, route: str) -> str:
    """Gives `GET /orders/{id}`. Names are kept, so that most requests make none."""
    name = known_names.get((method, route))
    if name is None:
        word = method_word(method)
        name = f"{word} {route}"
        if word is not UNKNOWN and len(known_names) < _NAMES_MAX:
            known_names[method, route] = name
    return name
