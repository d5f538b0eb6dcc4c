"""hypercorn: how long its answers over HTTP/2 take, in clear and behind TLS; those over HTTP/1 are timed by
the engine (native/core/answers/answers.h), like any server's.

The kernel knows when the connection's last bytes came, and not whose they were: if others came after its own,
a request has waited longer than reported, never less. Handling begins when the connection's task has the
request in hand; the answer is its status.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from types import FunctionType
from typing import Any

from loopcanary.integrations.answer_times import AnswerTraces, Times, can_tell, times_now
from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling

KIND = "HTTP/2 requests"
_ASKED = "loopcanary_asked"
_ASKED_MAX = 256
_ANSWERS = frozenset({"Response", "InformationalResponse"})


def patch(patches: Patches, tell: Telling) -> None:
    """`hypercorn.protocol.h2` is imported."""
    protocol: Any = getattr(sys.modules["hypercorn.protocol.h2"], "H2Protocol", None)
    if protocol is None or not can_tell():
        return
    answers = _HypercornAnswers(AnswerTraces(tell, KIND))
    if patches.wrap(protocol, "_create_stream", answers.around_request):
        patches.wrap(protocol, "stream_send", answers.around_send)


def _socket_of(protocol: Any) -> Any:
    """Of the connection, whose server's method is what the protocol sends with."""
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
    """Times the answers of all connections. Each loop's own thread."""

    def __init__(self, traces: AnswerTraces) -> None:
        self._traces = traces

    def around_request(self, original: FunctionType) -> Any:
        """The coroutine is made when it is awaited: no other one is put around it."""

        def _create_stream(self_: Any, request: Any) -> Any:
            with suppress(Exception):  # other versions of other people's objects
                if request.stream_id % 2 == 1 and self._traces.is_due():  # an even one: pushed by the server
                    self._note(self_, request)
            return original(self_, request)

        return _create_stream

    def around_send(self, original: FunctionType) -> Any:
        """Each part of the answer; the first one counts."""

        def stream_send(self_: Any, event: Any) -> Any:
            asked = self_.__dict__.get(_ASKED)
            if asked:
                with suppress(Exception):  # as above
                    self._answered(asked, event)
            return original(self_, event)

        return stream_send

    def _note(self, protocol: Any, request: Any) -> None:
        times = times_now(_socket_of(protocol))
        if times is not None:
            asked = protocol.__dict__.setdefault(_ASKED, {})
            if len(asked) >= _ASKED_MAX:  # streams that were reset
                asked.clear()
            asked[request.stream_id] = _method_of(request), times

    def _answered(self, asked: dict[int, tuple[str, Times]], event: Any) -> None:
        if type(event).__name__ in _ANSWERS:
            noted = asked.pop(event.stream_id, None)
            if noted is not None:
                self._traces.answered(*noted)
