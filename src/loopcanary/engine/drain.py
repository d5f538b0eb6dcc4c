"""The drain thread: sleeps without the GIL until the backend has news, and hands it on.

With the native engine it is a thread that `threading` does not know: the program must not find one that it
has not made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from loopcanary.engine.boundary import Boundary
from loopcanary.protocols import Backend

_JOIN_S = 5.0


class Thread(Protocol):
    """A thread that runs one function."""

    def start(self) -> None:
        """RuntimeError or OSError where the system gives none."""

    def join(self, timeout_s: float) -> bool:
        """Whether it has ended by then."""


class PythonThread:
    """A daemon thread of threading's."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=function, name="loopcanary-drain", daemon=True)

    def start(self) -> None:
        """RuntimeError where the system gives none."""
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        """Whether it has ended by then."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


class QuietThread:
    """A thread of the native engine's."""

    def __init__(self, native: ModuleType, function: Callable[[], None]) -> None:
        self._native = native
        self._function = function
        self._handle: Any = None

    def start(self) -> None:
        """OSError where the system gives none."""
        self._handle = self._native.start_thread(self._function)

    def join(self, timeout_s: float) -> bool:
        """Whether it has ended by then."""
        return self._handle is None or bool(self._native.join_thread(self._handle, timeout_s))


class Drain:
    """Wakes only for news. `native`: the native engine where it runs."""

    def __init__(
        self,
        backend: Backend,
        take: Callable[[], None],
        boundary: Boundary,
        *,
        first: Callable[[], object] = lambda: None,
        native: ModuleType | None = None,
    ) -> None:
        """`first` is called once, before anything else."""
        self._first = first
        self._backend = backend
        self._take = take
        self._boundary = boundary
        self._stopping = False
        self._ident: int | None = None
        self._thread: Thread = PythonThread(self._run) if native is None else QuietThread(native, self._run)

    def start(self) -> None:
        """Starts the thread. RuntimeError or OSError where the system gives none."""
        self._thread.start()

    def stop(self) -> bool:
        """Stops and joins; False where the thread is stuck (in a reporter's or interceptor's code)."""
        self._stopping = True
        self._backend.wake()
        if self._ident == threading.get_ident():
            return True
        return self._thread.join(_JOIN_S)

    def _run(self) -> None:
        self._ident = threading.get_ident()
        self._boundary.call("recovery", self._first)
        while not self._stopping:
            self._boundary.call("drain", self._backend.wait, None, keep=True)
            if not self._stopping:
                self._boundary.call("drain", self._take, keep=True)
