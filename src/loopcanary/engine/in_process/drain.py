"""The drain thread: sleeps without the GIL until the backend has news, and hands it on.

With the native engine it is a thread that `threading` does not know: the program must not find one that it
has not made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from loopcanary.engine import Boundary
from loopcanary.engine.fork_pause import IMPORTS
from loopcanary.engine.in_process.signal_mask import as_in_main_thread
from loopcanary.protocols.engine import Backend
from loopcanary.thread_frames import thread_frames

if TYPE_CHECKING:
    from types import FrameType

    from loopcanary._native import Native

_FINISH_S = 5.0


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

    def __init__(self, native: Native, function: Callable[[], None]) -> None:
        self._native = native
        self._function = function
        self._handle: Any = None

    def start(self) -> None:
        """OSError where the system gives none."""
        self._handle = self._native.start_thread(self._function)

    def join(self, timeout_s: float) -> bool:
        """Whether it has ended by then."""
        return self._handle is None or bool(self._native.join_thread(self._handle, timeout_s))


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
        take: Callable[[], object],
        boundary: Boundary,
        *,
        first: Callable[[], object] = lambda: None,
        native: Native | None = None,
        patience_s: Callable[[], float | None] = lambda: None,
    ) -> None:
        """`first` is called once, before anything else; `patience_s`: how long to wait for news at most."""
        self._backend = backend
        self._take = take
        self._boundary = boundary
        self._first: Callable[[], object] | None = first
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
            if turn.ident is not None and _imports(thread_frames().get(turn.ident)):
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
            else:
                self._begin()
            last()
            return True
        self._last = last
        return self._end(turn, _FINISH_S)

    def _end(self, turn: _Turn, patience_s: float) -> bool:
        turn.is_over = True
        self._backend.wake()
        return turn.thread is None or turn.thread.join(patience_s)

    def _begin(self) -> None:
        first, self._first = self._first, None
        if first is not None:
            self._boundary.call("recovery", first)

    def _run(self, turn: _Turn) -> None:
        if not turn.is_over or self._last is not None:  # not for a fork
            with as_in_main_thread():
                self._begin()
        while not turn.is_over:
            patience_s = self._boundary.call("drain", self._patience_s, keep=True)
            self._boundary.call("drain", self._backend.wait, patience_s, keep=True)
            if not turn.is_over:
                with as_in_main_thread():
                    self._boundary.call("drain", self._take, keep=True)
        if self._last is not None:
            with as_in_main_thread():
                self._last()


def _imports(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == IMPORTS:
            return True
        frame = frame.f_back
    return False
