"""granian: how long answers of ASGI applications take, from the moment that granian's own runtime hands a
request over to the first part of its answer.

Its sockets are Rust's, on threads of its own, which need the GIL to hand a request over: one that comes while
a call holds the GIL is handed over, and timed, from the end of that call on. Handling begins with the first
step of the request's task.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from functools import partial
from types import FunctionType
from typing import Any

from loopcanary.integrations.answer_times import AnswerTraces, Times
from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling


def patch(patches: Patches, tell: Telling) -> None:
    """`granian._futures` is imported: before the servers are, which take the function from it."""
    answers = _GranianAnswers(AnswerTraces(tell, "requests"))
    patches.wrap(sys.modules["granian._futures"], "_future_watcher_wrapper", answers.around_wrapper)


class _GranianAnswers:
    """Times what is handed over. Runtime's threads and each loop's own."""

    def __init__(self, traces: AnswerTraces) -> None:
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

    def __init__(self, proto: Any, traces: AnswerTraces, method: object, times: Times) -> None:
        self._proto = proto
        self._traces = traces
        self._asked: tuple[object, Times] | None = (method, times)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proto, name)

    def send(self, message: Any) -> Any:
        asked, self._asked = self._asked, None
        if asked is not None:
            with suppress(Exception):  # an engine that ends
                self._traces.answered(*asked)
        return self._proto.send(message)
