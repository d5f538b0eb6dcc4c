"""Bringing our threads to rest around a fork.

Why, and what it costs: docs/decisions/0004-fork.md.
"""

from __future__ import annotations

import os
import sys
import time

from loopcanary.engine.attachment import FORK_PATIENCE_S
from loopcanary.unpatched import unpatched
from loopcanary.whose_exception import ours_of

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Protocol

    from loopcanary.protocols.stores import Sink

    class _Rests(Protocol):
        def rest(self, patience_s: float) -> int: ...

        def go_on(self) -> None: ...

    class _Drain(Protocol):
        def rest(self, patience_s: float) -> bool: ...

        def is_importing(self) -> bool: ...

        def start(self) -> None: ...


IMPORTS = "<frozen importlib._bootstrap>"
"""The file that importing functions have in their code, in all of 3.11 to 3.15."""
_IMPORT_PATIENCE_S = 5.0
"""How long it waits for a thread in the middle of an import: the child would have half a module, for good."""
_CALM_PATIENCE_S = 2.0
"""How long ours wait with their imports for those of the program: it may run whole inside of one."""
STARTS = ("site", "sitecustomize")
"""Modules that the interpreter imports before the program begins: loopcanary starts from them."""
_LOOK_S = 0.002
_GONE_S = 0.2
"""A thread that ends needs a core for some microseconds. Beside it a fork only warns; os.unshare fails, and
os.setuid ends a process whose threads have different rights."""
_TASKS = "/proc/self/task"


class ForkPause:
    """One fork, from before it to after it. The forking thread."""

    def __init__(
        self,
        backend: _Rests,
        drain: _Drain | None = None,
        sink: Callable[[], Sink | None] = lambda: None,
        *,
        is_loading: Callable[[], bool] = lambda: False,
    ) -> None:
        """`drain`: None where this process has none; `sink` gives None until there is one; `is_loading`:
        whether the drain imports the diagnosis, or is about to: a child could not go on with that."""
        self._backend = backend
        self._drain = drain
        self._sink = sink
        self._is_loading = is_loading
        self._rested: Sink | None = None
        self.is_whole = True
        """Whether the child inherits nothing that SQLite has open, and no module half made."""

    def begin(self) -> None:
        """Ends the threads, as far as they end in time, and closes the store."""
        before = _threads()
        ended = 0
        if self._drain is not None:
            patience_s = import_patience_s() if self._is_loading() else FORK_PATIENCE_S
            ended = int(self._drain.rest(patience_s))
            self.is_whole = bool(ended) or not self._is_loading()
        ended += self._backend.rest(FORK_PATIENCE_S)
        sink = self._sink()
        if sink is not None:
            is_closed = sink.rest(FORK_PATIENCE_S)
            self.is_whole &= is_closed
            self._rested = sink if is_closed else None
        self._wait_for_imports()
        # The kernel's threads count, and one that has ended is there for some microseconds more. Another may
        # have begun meanwhile.
        if len(before) <= 1 + ended:
            _wait_for_end(before)

    def _wait_for_imports(self) -> None:
        # Last, since another one can begin at any release of the GIL.
        deadline_s = time.monotonic() + import_patience_s()
        while self._drain is not None and self._drain.is_importing() and time.monotonic() < deadline_s:
            unpatched("time", "sleep")(_LOOK_S)

    def end(self) -> None:
        """Starts the threads again. OSError or RuntimeError where the system gives none."""
        if self._rested is not None:
            self._rested.go_on()
            self._rested = None
        self._backend.go_on()
        if self._drain is not None:
            self._drain.start()


def _threads() -> frozenset[str]:
    try:
        return frozenset(os.listdir(_TASKS))
    except ours_of(OSError):
        return frozenset()


def _wait_for_end(before: frozenset[str]) -> None:
    deadline_s = time.monotonic() + _GONE_S
    while len(before & _threads()) > 1 and time.monotonic() < deadline_s:
        unpatched("time", "sleep")(0)  # lets go of the GIL, which a thread of Python's needs to end


def wait_for_thread(tid: int) -> None:
    """Until this thread, which has nothing more to do, has ended."""
    deadline_s = time.monotonic() + _GONE_S
    while os.path.exists(f"{_TASKS}/{tid}") and time.monotonic() < deadline_s:
        unpatched("time", "sleep")(0)


def wait_while(is_loading: Callable[[], bool], patience_s: float | None = None) -> None:
    """Until another thread of ours has imported what it does."""
    deadline_s = time.monotonic() + (import_patience_s() if patience_s is None else patience_s)
    while is_loading() and time.monotonic() < deadline_s:
        unpatched("time", "sleep")(_LOOK_S)


def wait_for_calm(is_over: Callable[[], bool]) -> None:
    """Until no other thread imports, or it is over. What ours import changes `sys.modules`, and a module may
    iterate over it while it is made: shiboken's ends the process if that fails."""
    wait_while(lambda: not is_over() and _another_imports(), _CALM_PATIENCE_S)


def _another_imports() -> bool:
    """Those that wait here for a thread of ours do not count."""
    from loopcanary.thread_frames import thread_frames

    me = unpatched("_thread", "get_ident")()
    return any(ident != me and imports(frame, (__name__,)) for ident, frame in thread_frames().items())


def import_patience_s(starts: tuple[str, ...] = ()) -> float:
    """How long the calling thread may wait for one of ours that imports. If it imports itself, but for
    `starts`, that one may be waiting for it: then not for long."""
    return FORK_PATIENCE_S if imports(sys._getframe(), starts) else _IMPORT_PATIENCE_S  # noqa: SLF001


def imports(frame: FrameType | None, starts: tuple[str, ...] = ()) -> bool:
    """Whether a thread with this innermost frame is in the middle of an import; of `starts` none counts."""
    while frame is not None and frame.f_code.co_filename != IMPORTS:
        frame = None if frame.f_globals.get("__name__") in starts else frame.f_back
    return frame is not None
