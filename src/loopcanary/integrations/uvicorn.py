"""uvicorn: how long a request takes from its bytes' arrival to the first byte of its answer, and how much of
that it waited for the loop.

The engine times the answers of all servers (native/core/answers.h), but knows neither tasks nor what TLS
hides: of uvicorn's requests more is known here.

The kernel says when a connection's last bytes arrived (TCP_INFO, to the length of its tick, 1 to 4 ms):
before the loop has looked at the socket, and however long it did not. Handling begins with the first step of
the request's task. What it waits for the loop later on, at its own awaits, is not told apart from its
handling.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling, method_word
from loopcanary.protocols import InputTrace

ONE_OF = 4
"""Of so many requests one is timed: by count and not by time, which would pass over those that come in a
crowd, as they do when the loop was blocked."""
_KIND = "requests"
_NO_LIMIT_NS = (1 << 63) - 1
"""A slow answer is no issue by itself: it may wait for others. What holds up the loop is a stall."""
_STARTED = "loopcanary_started"
_LAST_DATA_RECV = slice(52, 56)
"""tcpi_last_data_recv, milliseconds: linux/tcp.h, struct tcp_info, which only ever grows at its end."""
_TCP_INFO_BYTES = 56
_FAMILIES = (socket.AF_INET, socket.AF_INET6)
"""Of Unix sockets the kernel tells no time: their requests are left to the engine."""
_PROTOCOLS = ("H11Protocol", "HttpToolsProtocol")
_IMPLEMENTATIONS = ("uvicorn.protocols.http.h11_impl", "uvicorn.protocols.http.httptools_impl")


def patch(patches: Patches, tell: Telling) -> None:
    """One of the modules is imported; each may be, and each has its own class."""
    if not hasattr(socket, "TCP_INFO") or not sys.platform.startswith("linux"):
        return
    answers = _Answers(tell)
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
                if connection.family in _FAMILIES:
                    answers_elsewhere(connection.fileno())
            original(self, transport)

        return connection_made

    for name in _PROTOCOLS:
        protocol = getattr(module, name, None)
        if isinstance(protocol, type):
            patches.wrap(protocol, "connection_made", around_connection)


def _note_arrival(cycle: Any) -> None:
    began_ns = time.monotonic_ns()
    connection = cycle.transport.get_extra_info("socket")
    if connection.family in _FAMILIES:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        waited_ms = int.from_bytes(info[_LAST_DATA_RECV], sys.byteorder)
        setattr(cycle, _STARTED, (began_ns - 1_000_000 * waited_ms, began_ns))


class _Answers:
    """Times the answers of all loops. Each loop's own thread."""

    def __init__(self, tell: Telling) -> None:
        self._tell = tell
        self._requests = count()
        self._traces: dict[int, InputTrace] = {}

    def around_request(self, original: FunctionType) -> Any:
        """The task's whole work."""

        async def run_asgi(self_: Any, app: Any) -> None:
            if next(self._requests) % ONE_OF == 0:
                with suppress(Exception):  # a connection that is gone; another transport
                    _note_arrival(self_)
            await original(self_, app)

        return run_asgi

    def around_send(self, original: FunctionType) -> Any:
        """Each message of the answer; the first one counts."""

        async def send(self_: Any, message: Any) -> None:
            started = self_.__dict__.pop(_STARTED, None)
            if started is not None:
                with suppress(Exception):  # other people's objects; an engine that ends
                    self._note(self_, *started)
            await original(self_, message)

        return send

    def _note(self, cycle: Any, arrived_ns: int, began_ns: int) -> None:
        ident = threading.get_ident()
        trace = self._traces.get(ident)
        if trace is None:
            trace = self._traces[ident] = self._tell.tracers().input(_KIND, limit_ns=_NO_LIMIT_NS)
        name = self._tell.scene_now() or method_word(cycle.scope.get("method"))
        trace.handled(name, arrived_ns, began_ns, time.monotonic_ns())
