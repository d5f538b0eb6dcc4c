"""uvicorn: how long a request takes from its bytes' arrival to the first byte of its answer, and how much of
that it waited for the loop.

The engine times the answers of all servers in clear (native/core/answers/answers.h), but knows neither
tasks nor routes: uvicorn's requests on TCP are reported to it. Those behind TLS are timed here, and with the
portable engine all of them.

Handling begins with the first step of the request's task. What it waits for the loop later on, at its own
awaits, counts as handling.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial, wraps
from types import FunctionType
from typing import Any

from loopcanary.integrations.answer_times import AnswerTraces, Times, can_tell, times_now
from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import ServingEngine, Telling, method_word

_PROTOCOLS = ("H11Protocol", "HttpToolsProtocol")
_IMPLEMENTATIONS = ("uvicorn.protocols.http.h11_impl", "uvicorn.protocols.http.httptools_impl")


def patch(patches: Patches, tell: Telling) -> None:
    """One of the modules is imported; each may be, and each has its own class."""
    if not can_tell():
        return
    answers = _UvicornAnswers(AnswerTraces(tell, "requests"))
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
        with suppress(Exception):  # a connection that is gone; another transport
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
    """What the engine reads of such a connection is no HTTP."""

    def around_connection(original: FunctionType) -> Any:
        def connection_made(self: Any, transport: Any) -> None:
            with suppress(Exception):  # another transport
                if _is_tls(transport):
                    engine.answers_behind_tls()
            original(self, transport)

        return connection_made

    for name in _PROTOCOLS:
        protocol = getattr(module, name, None)
        if isinstance(protocol, type):
            patches.wrap(protocol, "connection_made", around_connection)


class _UvicornAnswers:
    """Times the answers of all loops. Each loop's own thread."""

    def __init__(self, traces: AnswerTraces) -> None:
        self._traces = traces

    def around_request(self, original: FunctionType) -> Any:
        """The task's whole work. A request that is not timed is left as it is. Nothing is stored in the cycle
        of one that is: attributes of its own would cost CPython's specialization for the class."""
        is_due, timed = self._traces.is_due, self.timed

        def run_asgi(self_: Any, app: Any) -> Any:
            return timed(original, self_, app) if is_due() else original(self_, app)

        return run_asgi

    async def timed(self, original: Any, cycle: Any, app: Any) -> None:
        """The work of one that is timed."""
        try:
            times = times_now(cycle.transport.get_extra_info("socket"))
        except Exception:  # noqa: BLE001 - a connection that is gone; another transport
            times = None
        await original(cycle, app if times is None else self._around_app(cycle, app, times))

    def _around_app(self, cycle: Any, app: Any, times: Times) -> Any:
        """The application, for this request; the first message of its answer counts."""
        is_told, answered = False, self._traces.answered

        def tell() -> None:
            nonlocal is_told
            is_told = True
            with suppress(Exception):  # other people's objects; an engine that ends
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
