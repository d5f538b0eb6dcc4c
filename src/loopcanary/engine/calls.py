"""Exact calls of chosen functions: begun and ended with the engine, beside its flight file."""

from __future__ import annotations

import os
from typing import Any, Protocol

from loopcanary.engine import Boundary

METHODS = "methods"
"""The name of those that the setting asks for, as a tracer."""


class CallTracer(Protocol):
    """What notes the calls; `tracers.methods` has it."""

    def start(self, flight: str, /) -> str | None:
        """Traces calls from now on, into files beside this one. Returns notes for people. Raises an exception
        with the reason if calls cannot be traced."""

    def stop(self) -> None:
        """Ends tracing: all code is as fast as before. Notes stay. Idempotent."""

    def counts(self) -> dict[str, int]:
        """Counters of traced calls, and of calls that were not traced."""


class EngineCalls:
    """The calls of one canary. Nothing is raised. Its methods are called under the GIL."""

    is_asked = False
    """For a command, and for a while."""

    def __init__(self, tracer: CallTracer, boundary: Boundary) -> None:
        self._tracer = tracer
        self._boundary = boundary
        self._runs = False

    def start(self, backend: Any) -> None:
        """The engine with this backend runs. The thread that started it."""
        if self._runs:
            return
        file = getattr(backend, "file", None)
        if file is None or not os.path.exists(file):
            self._boundary.tell("methods are not traced: there is no flight file with a name")
        else:
            self._start(str(file))

    def _start(self, file: str) -> None:
        with self._boundary.until_failure(METHODS) as is_on:
            if is_on:
                self._begin(file)

    def _begin(self, file: str) -> None:
        notice = self._tracer.start(file)
        self._runs = True
        if notice is not None:
            self._boundary.tell(notice)

    def stop(self) -> None:
        """The engine is about to end, or this is a forked child."""
        if self._runs:
            with self._boundary(METHODS) as is_on:
                if is_on:
                    self._end()

    def _end(self) -> None:
        self._runs = False
        self._tracer.stop()

    @property
    def runs(self) -> bool:
        return self._runs

    def counts(self) -> dict[str, int]:
        """Empty where nothing is traced."""
        return self._tracer.counts() if self._runs else {}


class AskedCalls(EngineCalls):
    """Calls that are traced for a while, as a command wants it."""

    is_asked = True

    def __init__(
        self,
        tracer: CallTracer,
        boundary: Boundary,
        errand: str,
        until_ns: int,
        before: EngineCalls | None = None,
    ) -> None:
        """The tracer runs. `errand`: its id; `until_ns`: when it is over if no one says so, monotonic;
        `before`: what is stopped, and may be started again after this."""
        super().__init__(tracer, boundary)
        self._runs = True
        self.before = before
        self.errand = errand
        self.until_ns = until_ns

    def start(self, backend: Any) -> None:
        """Does nothing: to trace in another engine was not asked for."""
