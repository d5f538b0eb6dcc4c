"""Bringing our threads to rest around a fork.

Why, and what it costs: docs/decisions/0004-fork.md.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_native_id

from loopcanary.engine.attachment import FORK_PATIENCE_S
from loopcanary.unpatched import unpatched

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
_LOOK_S = 0.002
_GONE_S = 0.02
_WARNS: bool = sys.version_info >= (3, 12)
"""Whether the interpreter warns of a fork beside threads."""
_TASKS = "/proc/self/task"


class ForkPause:
    """One fork, from before it to after it. The forking thread."""

    def __init__(self, backend: _Rests, drain: _Drain | None = None, sink: Sink | None = None) -> None:
        """`drain`, `sink`: None where this process has none."""
        self._backend = backend
        self._drain = drain
        self._sink = sink
        self.sink_rests = sink is None

    def begin(self) -> None:
        """Ends the threads, as far as they end in time, and closes the store."""
        before = _threads()
        ended = 0 if self._drain is None else int(self._drain.rest(FORK_PATIENCE_S))
        ended += self._backend.rest(FORK_PATIENCE_S)
        if self._sink is not None:
            self.sink_rests = self._sink.rest(FORK_PATIENCE_S)
        self._wait_for_imports()
        # CPython counts the kernel's threads, and a thread that has ended is one for some microseconds more.
        if len(before) == 1 + ended:
            _wait_for_end(before, ended)

    def _wait_for_imports(self) -> None:
        # Last, since another one can begin at any release of the GIL.
        deadline_s = time.monotonic() + _IMPORT_PATIENCE_S
        while self._drain is not None and self._drain.is_importing() and time.monotonic() < deadline_s:
            unpatched("time", "sleep")(_LOOK_S)

    def end(self) -> None:
        """Starts the threads again. OSError or RuntimeError where the system gives none."""
        if self._sink is not None and self.sink_rests:
            self.sink_rests = False
            self._sink.go_on()
        self._backend.go_on()
        if self._drain is not None:
            self._drain.start()


def _threads() -> frozenset[str]:
    if not _WARNS:
        return frozenset()
    try:
        return frozenset(os.listdir(_TASKS))
    except OSError:
        return frozenset()


def _wait_for_end(before: frozenset[str], count: int) -> None:
    deadline_s = time.monotonic() + _GONE_S
    while len(before & _threads()) > len(before) - count and time.monotonic() < deadline_s:
        unpatched("time", "sleep")(0)  # lets go of the GIL, which a thread of Python's needs to end


def wait_for_loads(is_busy: Callable[[], bool], tid: int) -> None:
    """Until nothing is loaded, and the thread that did (0: none) has ended, which has nothing more to do.
    Where the forking thread imports, the other one may be waiting for it: not for long."""
    patience_s = FORK_PATIENCE_S if _imports() else _IMPORT_PATIENCE_S
    deadline_s = time.monotonic() + patience_s
    while is_busy() and time.monotonic() < deadline_s:
        unpatched("time", "sleep")(_LOOK_S)
    deadline_s = time.monotonic() + _GONE_S
    is_other = _WARNS and tid not in (0, get_native_id())
    while is_other and os.path.exists(f"{_TASKS}/{tid}") and time.monotonic() < deadline_s:
        unpatched("time", "sleep")(0)


def wait_for_forks(count: Callable[[], int], inside: list[int], me: int) -> None:
    """Until none is made. Meanwhile `me` is not among those inside, which forks wait for."""
    deadline_s = time.monotonic() + _IMPORT_PATIENCE_S
    while count() and time.monotonic() < deadline_s:
        inside.remove(me)
        unpatched("time", "sleep")(_LOOK_S)
        inside.append(me)


def _imports() -> bool:
    """Whether the calling thread is in the middle of an import."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - as CPython, PyPy and others have it
    while frame is not None and frame.f_code.co_filename != IMPORTS:
        frame = frame.f_back
    return frame is not None
