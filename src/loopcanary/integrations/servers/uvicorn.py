"""uvicorn: how long a request takes from its bytes' arrival to the first byte of its answer, and how much of
that it waited for the loop.

The engine times the answers of all servers (native/core/answers/answers.h), but knows neither tasks nor
routes: of uvicorn's requests on TCP, in clear and behind TLS, more is known here.

Handling begins with the first step of the request's task. What it waits for the loop later on, at its own
awaits, is not told apart from its handling.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import update_wrapper
from types import FunctionType
from typing import Any

from loopcanary.integrations.answer_times import AnswerTraces, Times, can_tell, is_tcp, times_now
from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling

_PROTOCOLS = ("H11Protocol", "HttpToolsProtocol")
_IMPLEMENTATIONS = ("uvicorn.protocols.http.h11_impl", "uvicorn.protocols.http.httptools_impl")


def patch(patches: Patches, tell: Telling) -> None:
    """One of the modules is imported; each may be, and each has its own class."""
    if not can_tell():
        return
    answers = _UvicornAnswers(AnswerTraces(tell, "requests"))
    for name in _IMPLEMENTATIONS:
        cycle: Any = getattr(sys.modules.get(name), "RequestResponseCycle", None)
        if cycle is not None and patches.wrap(cycle, "run_asgi", answers.around_request):
            _keep_from_engine(patches, sys.modules[name], tell.answers_elsewhere)


def _keep_from_engine(
    patches: Patches, module: Any, answers_elsewhere: Callable[[int], object] | None
) -> None:
    """Answers are timed once."""
    if answers_elsewhere is None:
        return

    def around_connection(original: FunctionType) -> Any:
        def connection_made(self: Any, transport: Any) -> None:
            with suppress(Exception):  # a connection that is gone; another transport
                connection = transport.get_extra_info("socket")
                if is_tcp(connection):
                    answers_elsewhere(connection.fileno())
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
        is_due = self._traces.is_due

        async def timed(cycle: Any, app: Any) -> None:
            try:
                times = times_now(cycle.transport.get_extra_info("socket"))
            except Exception:  # noqa: BLE001 - a connection that is gone; another transport
                times = None
            await original(cycle, app if times is None else self._around_app(cycle, app, times))

        def run_asgi(self_: Any, app: Any) -> Any:
            return timed(self_, app) if is_due() else original(self_, app)

        update_wrapper(timed, original)
        return run_asgi

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
