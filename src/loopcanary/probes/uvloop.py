"""The uvloop probe: runs, turns and callbacks seen in the calls by which uvloop's shared object asks libuv,
the system and CPython (native/probes/uvloop/hooks.c). Nothing of uvloop's own is touched. Of a loop that does
not wait, the garbage collector tells what its queue holds.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any

from loopcanary.probes import PatchingProbe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loopcanary._native import Native
    from loopcanary.protocols.tracing import Tracers


KIND = "uvloop"


class UvloopProbe(PatchingProbe):
    """Watches all loops of uvloop's, made before or after, in any thread."""

    kind = KIND

    _engine: Native
    _tracers: Callable[[], Tracers] | None = None

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._here = threading.local()

    def use_tracers_when_needed(self, tracers: Callable[[], Tracers]) -> None:
        """Idle work is reported to what `tracers` gives. Called before `install`."""
        self._tracers = tracers

    def _patch(self) -> None:
        loop = sys.modules["uvloop.loop"]
        handle = getattr(loop, "Handle", None)
        if not isinstance(handle, type):
            self._notes.append("uvloop: this version has other handles than those known; it is not watched")
            return
        self._engine.learn_asyncio()
        running_loop = sys.modules["asyncio.events"]._get_running_loop
        runs, waits, callbacks = self._engine.hook_uvloop(handle, running_loop, self._tell, self._look)
        self._notes.extend(_missing(runs, waits, callbacks))

    def _take_back(self) -> None:
        self._engine.unhook_uvloop()

    def _tell(self) -> None:
        self._contain(self._loop_seen)

    def _look(self, turns: int) -> None:
        """So many turns in a row began with work that was ready, of this thread's loop; 0: it has waited."""
        watch = getattr(self._here, "spins", None)
        if watch is None:
            from loopcanary.probes.asyncio import SpinWatch

            watch = self._here.spins = SpinWatch((), self._tell_spin, identities=_ready_work)
        self._contain(lambda: watch.look(turns))

    def _tell_spin(self, name: str, begin_ns: int, end_ns: int, turns: int) -> None:
        if self._tracers is not None:
            self._tracers().idle(KIND).spun(name, begin_ns, end_ns, turns)


def _ready_work(_: object) -> Iterator[tuple[int, str]]:
    """Number and name of what the calling thread's loop has in its queue. uvloop keeps that to itself; the
    garbage collector tells what its objects refer to."""
    from loopcanary.probes.asyncio import EXAMINED_MAX, identity_of

    loop = sys.modules["asyncio.events"]._get_running_loop()
    handle_type = sys.modules["uvloop.loop"].Handle
    queues = [queue for queue in gc.get_referents(loop) if type(queue) is deque]
    for handle in islice((one for queue in queues for one in list(queue)), EXAMINED_MAX):
        if type(handle) is handle_type:
            callback = next((one for one in gc.get_referents(handle) if callable(one)), None)
            if callback is not None:
                yield identity_of(callback)


def _missing(runs: bool, waits: Sequence[str], callbacks: bool) -> Sequence[str]:
    """What the hooks do not reach in this build of uvloop, in words for people."""
    if not callbacks:
        return ("uvloop: its callbacks cannot be hooked in this build; they are not seen",)
    if not runs or not waits:
        return ("uvloop: libuv's waits cannot be hooked in this build; each callback counts as a turn",)
    return ()
