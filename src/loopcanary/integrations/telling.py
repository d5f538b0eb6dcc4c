"""How integrations report scenes, requests and jobs to the engine. No error of ours gets out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from loopcanary.whose_exception import ours

if TYPE_CHECKING:
    from loopcanary.protocols.tracing import Tracers

UNKNOWN = "?"
_JOBS_OF_QUEUES = 10
"""Times the threshold of a request: a job of a task queue may take longer."""
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

    def held_scene(self) -> Any:
        """What `back_to_scene` gets back to."""

    def back_to_scene(self, before: Any) -> None:
        """The scene is again what it was."""

    def allow_ns(self, duration_ns: int) -> None:
        """The running callback may take so long."""

    def watch_for(self, name: str, threshold_ns: int) -> AbstractContextManager[object]:
        """A block that is a piece of work."""


class ServingEngine(Protocol):
    """What the native engine offers servers whose answers it times, and ASGI frameworks: in
    native/probes/answers/hook.c, native/probes/asgi/route.c."""

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
        native/probes/start/start.c."""

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
        job_threshold_ns: int,
        engine: ServingEngine | None = None,
        ends: Callable[[], object] = _nothing,
        judges: Callable[[], object] = _nothing,
        starts: Callable[[], object] = _nothing,
    ) -> None:
        """`begins` is called, cheaply, when the program is at work; `ends` when the process is about to end
        without Python's own end; `judges` where no other process can judge it; `starts` when a worker is
        about to load the application. `tracers` are made when they are first asked for. `engine`: the native
        one, where it runs."""
        self.ends = ends
        self.judges = judges
        self.starts = starts
        self.engine = engine
        self._scopes = scopes
        self._begins = begins
        self._job_ns = job_threshold_ns
        self.keep_scene = scopes.keep_scene
        self.scene_now = scopes.current_scene
        self.held_scene = scopes.held_scene
        self.back_to_scene = scopes.back_to_scene
        self.enter_scene = scopes.enter_scene
        self.tracers = tracers

    def around_making(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Puts a note of the start around a function: when it returns, the program's application object is
        made."""
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
        except ours():  # other versions of other people's objects
            return
        if name:
            self.enter_scene(name)

    def request(self, name: str) -> AbstractContextManager[object]:
        """A block that is a request on a thread of its own."""
        return self._work(name, self._job_ns)

    def task(self, name: str) -> AbstractContextManager[object]:
        """A block that is a job of a queue."""
        return self._work(name, _JOBS_OF_QUEUES * self._job_ns)

    def cell(self) -> None:
        """A notebook's cell begins: its callback may take as long as a job of a queue."""
        self._scopes.allow_ns(_JOBS_OF_QUEUES * self._job_ns)

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
    """The HTTP method as a scene names it."""
    return method if isinstance(method, str) and method in METHODS else UNKNOWN


_NAMES_MAX = 4096
known_names: dict[tuple[object, str], str] = {}
"""What `route_name` has given, by method and route."""


def route_name(method: object, route: str) -> str:
    """Gives `GET /orders/{id}`. Names are kept, so that most requests make none."""
    name = known_names.get((method, route))
    if name is None:
        word = method_word(method)
        name = f"{word} {route}"
        if word is not UNKNOWN and len(known_names) < _NAMES_MAX:
            known_names[method, route] = name
    return name


_SEGMENT_MAX = 32
_PATHS_MAX = 512
_OTHER = "other"


class Paths:
    """A name for a request without a known route: `GET /orders/{}` for `/orders/4711`. A segment with a
    digit, a strange sign or great length is taken for a value. Beyond 512 different names all are "other":
    nothing grows with what clients make up.

    Any thread.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}

    def name(self, method: object, path: str) -> str:
        plain = (segment if _is_word(segment) else "{}" for segment in path.split("/"))
        key = (method_word(method), "/".join(plain))
        name = self._known.get(key)
        if name is None:
            name = f"{key[0]} {key[1]}" if len(self._known) < _PATHS_MAX else _OTHER
            if name != _OTHER:
                self._known[key] = name
        return name


def _is_word(segment: str) -> bool:
    letters = segment.replace("-", "").replace("_", "").replace(".", "")
    return not segment or (len(segment) <= _SEGMENT_MAX and letters.isascii() and letters.isalpha())
