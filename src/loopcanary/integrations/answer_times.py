"""Request latency, for servers of which more is known than the engine sees (native/core/answers/answers.h):
when a request's bytes came, and a trace that takes the answer.

The kernel says when a connection's last bytes arrived (TCP_INFO, to the length of its tick, 1 to 4 ms):
before the loop has looked at the socket, and however long it did not.
"""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from itertools import cycle
from typing import Any

from loopcanary.integrations.telling import Telling, method_word
from loopcanary.model.figures.lags import REQUESTS_ONE_OF
from loopcanary.protocols.tracing import InputTrace

_NO_LIMIT_NS = (1 << 63) - 1
"""A slow answer is no issue: it may wait for others. What holds up the loop is a stall."""
_LEVEL, _INFO = int(socket.IPPROTO_TCP), int(getattr(socket, "TCP_INFO", 0))
_TCP_INFO_BYTES = 56
_last_data_recv = struct.Struct("=52xI").unpack
"""tcpi_last_data_recv, milliseconds: linux/tcp.h, struct tcp_info, which only ever grows at its end."""

Times = tuple[int, int]
"""When a request came, and when its handling began: of time.monotonic_ns()."""


def can_tell() -> bool:
    """Whether this system's kernel says when bytes came."""
    return hasattr(socket, "TCP_INFO") and sys.platform.startswith("linux")


def times_now(connection: Any) -> Times | None:
    """The arrival of the request that is handled from now on, the connection's last; None: no TCP."""
    began_ns = time.monotonic_ns()
    try:  # and no look at its family: enum's code, gone cold, takes longer than the kernel
        info = connection.getsockopt(_LEVEL, _INFO, _TCP_INFO_BYTES)
    except OSError:
        return None
    (waited_ms,) = _last_data_recv(info)
    return began_ns - 1_000_000 * waited_ms, began_ns


class AnswerTraces:
    """Reports request latencies of one kind, on all threads. Each loop's own thread."""

    def __init__(self, tell: Telling, kind: str) -> None:
        self._tell = tell
        self._kind = kind
        self._traces: dict[int, InputTrace] = {}
        self.is_due = cycle((True,) + (False,) * (REQUESTS_ONE_OF - 1)).__next__
        """Whether the next request is timed. Asked for each request, so it runs no Python code."""

    def answered(self, method: object, times: Times) -> None:
        """The answer's first byte is about to be sent."""
        ident = threading.get_ident()
        trace = self._traces.get(ident)
        if trace is None:
            tracers = self._tell.tracers()
            trace = tracers.input(self._kind, limit_ns=_NO_LIMIT_NS, one_of=REQUESTS_ONE_OF)
            self._traces[ident] = trace
        trace.handled(self._tell.scene_now() or method_word(method), *times, time.monotonic_ns())
