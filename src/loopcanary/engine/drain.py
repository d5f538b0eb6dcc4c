"""The drain thread: sleeps without the GIL until the backend has news, and hands it on.

With the native engine it is a thread that `threading` does not know: the program must not find one that it
has not made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from loopcanary.engine import Boundary
from loopcanary.engine.fork_pause import imports
from loopcanary.engine.threads import PythonThread, QuietThread, as_in_main_thread
from loopcanary.protocols.engine import Backend, Thread
from loopcanary.thread_frames import thread_frames

if TYPE_CHECKING:
    from loopcanary._native import Native

_FINISH_S = 5.0


class _Turn:
    """One life of the thread: from its start to a fork, or to the end."""

    def __init__(self, before: _Turn | None) -> None:
        self.before = before
        """The one that it waits for, if that was still at work."""
        self.is_over = False
        self.ident: int | None = None
        """The thread's, while it runs."""
        self.thread: Thread | None = None


class Drain:
    """Wakes only for news. `native`: the native engine where it runs."""

    def __init__(
        self,
        backend: Backend,
        judge: Callable[[], object],
        boundary: Boundary,
        *,
        native: Native | None = None,
        patience_s: Callable[[], float | None] = lambda: None,
    ) -> None:
        """`judge` reads, judges and stores what there is; `patience_s`: how long to wait for news at most."""
        self._backend = backend
        self._judge = judge
        self._boundary = boundary
        self._last: Callable[[], None] | None = None
        self._native = native
        self._patience_s = patience_s
        self._turn: _Turn | None = None

    def start(self) -> None:
        """Starts the thread. RuntimeError or OSError where the system gives none."""
        turn = _Turn(self._turn)

        def run() -> None:
            if turn.before is not None and turn.before.thread is not None:
                turn.before.thread.join(threading.TIMEOUT_MAX)  # stalls are handed on one at a time
            turn.before = None
            turn.ident = threading.get_ident()
            try:
                with self._boundary.on_own_thread():
                    self._run(turn)
            finally:
                turn.ident = None

        turn.thread = PythonThread(run) if self._native is None else QuietThread(self._native, run)
        try:
            turn.thread.start()
        except RuntimeError:
            if threading.main_thread().is_alive():
                raise
            return  # CPython 3.12 gives none while the interpreter ends: `finish` does the work
        self._turn = turn

    @property
    def is_started(self) -> bool:
        """Whether there is a thread, or was one before a fork."""
        return self._turn is not None

    def rest(self, patience_s: float) -> bool:
        """Ends the thread after its piece of work; False if that takes longer (a reporter or interceptor is
        stuck). `start` starts it again."""
        turn = self._turn
        return turn is None or self._end(turn, patience_s)

    def is_importing(self) -> bool:
        """Whether the thread is in the middle of an import just now. GIL held."""
        turn = self._turn
        while turn is not None:
            # Not bound: this frame is among them, and such a cycle keeps all threads' variables alive.
            if turn.ident is not None and imports(thread_frames().get(turn.ident)):
                return True
            turn = turn.before
        return False

    def is_here(self) -> bool:
        """Whether the caller is on this thread: others' code that it has called."""
        return self._turn is not None and self._turn.ident == threading.get_ident()

    def finish(self, last: Callable[[], None]) -> bool:
        """Ends the thread for good; it calls `last` before. False if it takes longer than callers should
        wait."""
        turn = self._turn
        if turn is None or self.is_here():
            if turn is not None:
                turn.is_over = True
            last()
            return True
        self._last = last
        return self._end(turn, _FINISH_S)

    def _end(self, turn: _Turn, patience_s: float) -> bool:
        turn.is_over = True
        self._backend.wake()
        return turn.thread is None or turn.thread.join(patience_s)

    def _run(self, turn: _Turn) -> None:
        while not turn.is_over:
            patience_s = None
            with self._boundary("drain"):
                patience_s = self._patience_s()
            with self._boundary("drain"):
                self._backend.wait(patience_s)
            if not turn.is_over:
                with as_in_main_thread(), self._boundary("drain"):
                    self._judge()
        if self._last is not None:
            with as_in_main_thread():
                self._last()
