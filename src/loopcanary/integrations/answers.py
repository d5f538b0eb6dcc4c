"""Asyncio servers whose request latency is reported from Python, where the engine sees less
(native/core/answers/answers.h): uvicorn, hypercorn and granian.

The kernel says when a connection's last bytes arrived (TCP_INFO, to the length of its tick, 1 to 4 ms):
before the loop has looked at the socket, and however long it did not.
"""

from __future__ import annotations

import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from itertools import cycle
from types import FunctionType
from typing import TYPE_CHECKING, Any

from loopcanary.integrations.telling import ServingEngine, Telling, method_word
from loopcanary.model.config import REQUESTS_ONE_OF
from loopcanary.patches import Patches
from loopcanary.whose_exception import ours, ours_of, stops_ours

if TYPE_CHECKING:
    from loopcanary.protocols.tracing import InputTrace

_NO_LIMIT_NS = (1 << 63) - 1
"""A slow answer is not an issue: it may wait for others. What holds up the loop is a stall."""
_LEVEL, _INFO = int(socket.IPPROTO_TCP), int(getattr(socket, "TCP_INFO", 0))
_TCP_INFO_BYTES = 56
_last_data_recv = struct.Struct("=52xI").unpack
"""tcpi_last_data_recv, milliseconds: linux/tcp.h, struct tcp_info, which only ever grows at its end."""

_Times = tuple[int, int]
"""When a request came, and when its handling began: of time.monotonic_ns()."""


def _kernel_tells() -> bool:
    """Whether this system's kernel says when bytes came."""
    return hasattr(socket, "TCP_INFO") and sys.platform.startswith("linux")


def _times_now(connection: Any) -> _Times | None:
    """The arrival of the request that is handled from now on, the connection's last; None: no TCP."""
    began_ns = time.monotonic_ns()
    try:  # and no look at its family: enum's code, gone cold, takes longer than the kernel
        info = connection.getsockopt(_LEVEL, _INFO, _TCP_INFO_BYTES)
    except ours_of(OSError):
        return None
    (waited_ms,) = _last_data_recv(info)
    return began_ns - 1_000_000 * waited_ms, began_ns


class _AnswerTraces:
    """Reports request latencies of one kind. Each loop calls it on its own thread."""

    def __init__(self, tell: Telling, kind: str) -> None:
        self._tell = tell
        self._kind = kind
        self._traces: dict[int, InputTrace] = {}
        self.is_due = cycle((True,) + (False,) * (REQUESTS_ONE_OF - 1)).__next__
        """Whether the next request is timed. Asked for each request, so it runs no Python code."""

    def answered(self, method: object, times: _Times) -> None:
        """Reports the answer whose first byte is about to be sent."""
        ident = threading.get_ident()
        trace = self._traces.get(ident)
        if trace is None:
            tracers = self._tell.tracers()
            trace = tracers.input(self._kind, limit_ns=_NO_LIMIT_NS, one_of=REQUESTS_ONE_OF)
            self._traces[ident] = trace
        trace.handled(self._tell.scene_now() or method_word(method), *times, time.monotonic_ns())


_PROTOCOLS = ("H11Protocol", "HttpToolsProtocol")
_IMPLEMENTATIONS = ("uvicorn.protocols.http.h11_impl", "uvicorn.protocols.http.httptools_impl")


def patch_uvicorn(patches: Patches, tell: Telling) -> None:
    """Reports how long a request takes from its bytes' arrival to the first byte of its answer, and how much
    of that it waited for the loop.

    The engine times the answers of all servers in clear, but knows neither tasks nor routes: uvicorn's
    requests on TCP are reported to it. Those behind TLS are timed here, and with the portable engine all of
    them. Handling begins with the first step of the request's task. What it waits for the loop later on, at
    its own awaits, counts as handling.

    One of the modules is imported; each may be, and each has its own class.
    """
    if not _kernel_tells():
        return
    answers = _UvicornAnswers(_AnswerTraces(tell, "requests"))
    engine = tell.engine
    for name in _IMPLEMENTATIONS:
        module: Any = sys.modules.get(name)
        cycle: Any = getattr(module, "RequestResponseCycle", None)
        if cycle is None:
            continue
        if engine is None:
            patches.wrap(cycle, "run_asgi", answers.around_request)
        elif patches.wrap(cycle, "run_asgi", partial(_around_timed, answers, tell, engine)):
            _look_for_tls(patches, module, engine)


def _around_timed(answers: _UvicornAnswers, tell: Telling, engine: ServingEngine, original: Any) -> Any:
    """The engine times requests in clear, and only those that it does come here: their handling begins with
    the task, and their scene is known when they are answered."""
    answer_handled, answer_named, scene_now = engine.answer_handled, engine.answer_named, tell.scene_now

    @wraps(original)  # it names the request's task
    async def handle(cycle: Any, app: Any, fd: int) -> None:
        answer_handled(fd)

        async def named_app(scope: Any, receive: Any, send: Any) -> Any:
            is_named = False

            def named_send(message: Any) -> Any:
                nonlocal is_named
                if not is_named:
                    is_named = True
                    answer_named(fd, scene_now() or method_word(scope.get("method")))
                return send(message)

            return await app(scope, receive, named_send)

        await original(cycle, named_app)

    def timed(cycle: Any, app: Any, fd: int) -> Any:
        with stops_ours:  # a connection that is gone; another transport
            if fd < 0:
                return (
                    answers.timed(original, cycle, app) if _is_tls(cycle.transport) else original(cycle, app)
                )
            if cycle.transport.get_extra_info("socket").fileno() == fd:
                return handle(cycle, app, fd)
        return original(cycle, app)

    engine.asgi_root(original)
    engine.asgi_root(handle)
    return engine.answers_gate(original, timed)


def _is_tls(transport: Any) -> bool:
    return transport.get_extra_info("sslcontext") is not None


def _look_for_tls(patches: Patches, module: Any, engine: ServingEngine) -> None:
    """Tells the engine of connections with TLS: what it reads of these is not HTTP."""

    def around_connection(original: FunctionType) -> Any:
        def connection_made(self: Any, transport: Any) -> None:
            with stops_ours:  # another transport
                if _is_tls(transport):
                    engine.answers_behind_tls()
            original(self, transport)

        return connection_made

    for name in _PROTOCOLS:
        protocol = getattr(module, name, None)
        if isinstance(protocol, type):
            patches.wrap(protocol, "connection_made", around_connection)


class _UvicornAnswers:
    """Times the answers of all loops. Called on each loop's own thread."""

    def __init__(self, traces: _AnswerTraces) -> None:
        self._traces = traces

    def around_request(self, original: FunctionType) -> Any:
        """The task's whole work. A request that is not timed is left as it is. Nothing is stored in the cycle
        of one that is: attributes of its own would cost CPython's specialization for the class."""
        is_due, timed = self._traces.is_due, self.timed

        def run_asgi(self_: Any, app: Any) -> Any:
            return timed(original, self_, app) if is_due() else original(self_, app)

        return run_asgi

    async def timed(self, original: Any, cycle: Any, app: Any) -> None:
        """The work of a request that is timed."""
        try:
            times = _times_now(cycle.transport.get_extra_info("socket"))
        except ours():  # a connection that is gone; another transport
            times = None
        await original(cycle, app if times is None else self._around_app(cycle, app, times))

    def _around_app(self, cycle: Any, app: Any, times: _Times) -> Any:
        """The application, for this request; the first message of its answer counts."""
        is_told, answered = False, self._traces.answered

        def tell() -> None:
            nonlocal is_told
            is_told = True
            with stops_ours:  # other people's objects; an engine that ends
                answered(cycle.scope.get("method"), times)

        async def timed_app(scope: Any, receive: Any, send: Any) -> Any:
            def timed_send(message: Any) -> Any:
                if not is_told:
                    tell()
                return send(message)

            try:
                return await app(scope, receive, timed_send)
            finally:
                if not is_told and not cycle.disconnected:
                    tell()  # uvicorn answers that it failed

        return timed_app


def patch_uvicorn_server(patches: Patches, tell: Telling) -> None:
    """When uvicorn's application is loaded, and when the signal ends it that has asked it to.

    When it has served its last request it puts back what handled the signal before, and raises it anew (since
    0.29). Where nothing handled it, that is the process's end, and no atexit runs: what is known so far is
    stored before.
    """
    patches.wrap(sys.modules["uvicorn.config"].Config, "load", tell.around_making)
    server: Any = sys.modules["uvicorn.server"]
    patches.wrap(server.Server, "capture_signals", lambda original: _around_signals(original, tell.ends))


def _around_signals(
    original: FunctionType, ends: Callable[[], object]
) -> Callable[[Any], AbstractContextManager[None]]:
    @contextmanager
    def capture_signals(self: Any) -> Iterator[None]:
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        with original(self):
            yield
            captured = getattr(self, "_captured_signals", ())
            if any(before.get(number) is signal.SIG_DFL for number in captured):
                ends()

    return capture_signals


_ASKED = "loopcanary_asked"
_ASKED_MAX = 256
_ANSWERS = frozenset({"Response", "InformationalResponse"})


def patch_hypercorn(patches: Patches, tell: Telling) -> None:
    """Answers over HTTP/2, in clear and behind TLS; the engine times those over HTTP/1, like any server's.

    The kernel knows when the connection's last bytes came, and not whose they were: if others came after its
    own, a request has waited longer than reported, never less. Handling begins when the connection's task has
    the request in hand; the answer is its status.
    """
    protocol: Any = getattr(sys.modules["hypercorn.protocol.h2"], "H2Protocol", None)
    if protocol is None or not _kernel_tells():
        return
    answers = _HypercornAnswers(_AnswerTraces(tell, "HTTP/2 requests"))
    if patches.wrap(protocol, "_create_stream", answers.around_request):
        patches.wrap(protocol, "stream_send", answers.around_send)


def _socket_of(protocol: Any) -> Any:
    """The socket of the connection. `protocol.send` is a method of the connection's server."""
    server = protocol.send.__self__
    writer = getattr(server, "writer", None)
    if writer is not None:
        return writer.get_extra_info("socket")
    stream = server.stream  # trio's; behind TLS there is another one in it
    return getattr(stream, "transport_stream", stream).socket


def _method_of(request: Any) -> str:
    (method,) = (value for name, value in request.headers if name == b":method")
    return str(method, "ascii")


class _HypercornAnswers:
    """Times the answers of all connections. Called on each loop's own thread."""

    def __init__(self, traces: _AnswerTraces) -> None:
        self._traces = traces

    def around_request(self, original: FunctionType) -> Any:
        """The coroutine is made when it is awaited: no other one is put around it."""

        def _create_stream(self_: Any, request: Any) -> Any:
            with stops_ours:  # other versions of other people's objects
                if request.stream_id % 2 == 1 and self._traces.is_due():  # an even one: pushed by the server
                    self._note(self_, request)
            return original(self_, request)

        return _create_stream

    def around_send(self, original: FunctionType) -> Any:
        """Each part of the answer; the first one counts."""

        def stream_send(self_: Any, event: Any) -> Any:
            asked = self_.__dict__.get(_ASKED)
            if asked:
                with stops_ours:  # as above
                    self._answered(asked, event)
            return original(self_, event)

        return stream_send

    def _note(self, protocol: Any, request: Any) -> None:
        times = _times_now(_socket_of(protocol))
        if times is not None:
            asked = protocol.__dict__.setdefault(_ASKED, {})
            if len(asked) >= _ASKED_MAX:  # streams that were reset
                asked.clear()
            asked[request.stream_id] = _method_of(request), times

    def _answered(self, asked: dict[int, tuple[str, _Times]], event: Any) -> None:
        if type(event).__name__ in _ANSWERS:
            noted = asked.pop(event.stream_id, None)
            if noted is not None:
                self._traces.answered(*noted)


def patch_granian(patches: Patches, tell: Telling) -> None:
    """ASGI applications, from the moment that granian's own runtime hands a request over to the first part of
    its answer. `granian._futures` is imported before the servers, which take the function from it.

    Its sockets are Rust's, on threads of its own, which need the GIL to hand a request over: one that comes
    while a call holds the GIL is handed over, and timed, from the end of that call on. Handling begins with
    the first step of the request's task.
    """
    answers = _GranianAnswers(_AnswerTraces(tell, "requests"))
    patches.wrap(sys.modules["granian._futures"], "_future_watcher_wrapper", answers.around_wrapper)


class _GranianAnswers:
    """Times requests that the runtime hands over. Called on the runtime's threads and on each loop's own."""

    def __init__(self, traces: _AnswerTraces) -> None:
        self._traces = traces

    def around_wrapper(self, original: FunctionType) -> Any:
        """Around the function that turns the caller of the application into a coroutine function, which the
        runtime's thread calls to hand a request over."""

        def _future_watcher_wrapper(inner: Any) -> Any:
            plain = original(inner)

            def future_watcher(watcher: Any) -> Any:
                if self._traces.is_due():
                    return original(partial(self._handle, inner, time.monotonic_ns()))(watcher)
                return plain(watcher)

            return future_watcher

        return _future_watcher_wrapper

    def _handle(self, inner: Any, handed_ns: int, scope: Any, proto: Any) -> Any:
        """The first step: gives what `inner` gives, which is awaited."""
        if isinstance(scope, dict) and scope.get("type") == "http":
            times = handed_ns, time.monotonic_ns()
            proto = _TimedProtocol(proto, self._traces, scope.get("method"), times)
        return inner(scope, proto)


class _TimedProtocol:
    """The request's own protocol, whose first message is reported."""

    __slots__ = ("_asked", "_proto", "_traces")

    def __init__(self, proto: Any, traces: _AnswerTraces, method: object, times: _Times) -> None:
        self._proto = proto
        self._traces = traces
        self._asked: tuple[object, _Times] | None = (method, times)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proto, name)

    def send(self, message: Any) -> Any:
        asked, self._asked = self._asked, None
        if asked is not None:
            with stops_ours:  # an engine that ends
                self._traces.answered(*asked)
        return self._proto.send(message)
