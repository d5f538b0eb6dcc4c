"""uvicorn: how long a request takes from its bytes' arrival to the first byte of its answer, and how much of
that it waited for the loop.

The engine times the answers of all servers (native/core/answers.h), but knows neither tasks nor routes: of
uvicorn's requests on TCP more is known here. Those on Unix sockets are left to the engine.

Handling begins with the first step of the request's task. What it waits for the loop later on, at its own
awaits, is not told apart from its handling.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType
from typing import Any

from loopcanary.integrations.answer_times import AnswerTraces, can_tell, is_tcp, times_now
from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling

_STARTED = "loopcanary_started"
_PROTOCOLS = ("H11Protocol", "HttpToolsProtocol")
_IMPLEMENTATIONS = ("uvicorn.protocols.http.h11_impl", "uvicorn.protocols.http.httptools_impl")


def patch(patches: Patches, tell: Telling) -> None:
    """One of the modules is imported; each may be, and each has its own class."""
    if not can_tell():
        return
    answers = _Answers(AnswerTraces(tell, "requests"))
    for name in _IMPLEMENTATIONS:
        cycle: Any = getattr(sys.modules.get(name), "RequestResponseCycle", None)
        if cycle is not None and patches.wrap(cycle, "run_asgi", answers.around_request):
            patches.wrap(cycle, "send", answers.around_send)
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


class _Answers:
    """Times the answers of all loops. Each loop's own thread."""

    def __init__(self, traces: AnswerTraces) -> None:
        self._traces = traces

    def around_request(self, original: FunctionType) -> Any:
        """The task's whole work."""

        async def run_asgi(self_: Any, app: Any) -> None:
            if self._traces.is_due():
                with suppress(Exception):  # a connection that is gone; another transport
                    times = times_now(self_.transport.get_extra_info("socket"))
                    if times is not None:
                        setattr(self_, _STARTED, times)
            await original(self_, app)

        return run_asgi

    def around_send(self, original: FunctionType) -> Any:
        """Each message of the answer; the first one counts."""

        async def send(self_: Any, message: Any) -> None:
            times = self_.__dict__.pop(_STARTED, None)
            if times is not None:
                with suppress(Exception):  # other people's objects; an engine that ends
                    self._traces.answered(self_.scope.get("method"), times)
            await original(self_, message)

        return send
