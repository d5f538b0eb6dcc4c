"""The drain thread: sleeps without the GIL until the backend has news, and hands it on."""

from __future__ import annotations

import threading
from collections.abc import Callable

from loopcanary.engine.boundary import Boundary
from loopcanary.protocols import Backend

_JOIN_S = 5.0


class Drain:
    """A daemon thread of Python's; it wakes only for news."""

    def __init__(
        self,
        backend: Backend,
        take: Callable[[], None],
        boundary: Boundary,
        *,
        first: Callable[[], object] = lambda: None,
    ) -> None:
        """`first` is called once, before anything else."""
        self._first = first
        self._backend = backend
        self._take = take
        self._boundary = boundary
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="loopcanary-drain", daemon=True)

    def start(self) -> None:
        """Starts the thread. RuntimeError where the system gives none."""
        self._thread.start()

    def stop(self) -> bool:
        """Stops and joins; False where the thread is stuck (in a reporter's or interceptor's code)."""
        self._stopping = True
        self._backend.wake()
        if self._thread is threading.current_thread():
            return True
        self._thread.join(_JOIN_S)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._boundary.call("recovery", self._first)
        while not self._stopping:
            self._boundary.call("drain", self._backend.wait, None, keep=True)
            if not self._stopping:
                self._boundary.call("drain", self._take, keep=True)
