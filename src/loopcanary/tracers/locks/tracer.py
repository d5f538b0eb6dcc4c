"""The tracer of locks between tasks of asyncio, anyio and trio."""

from __future__ import annotations

import asyncio
import sys
import time
import weakref
from collections.abc import Callable
from typing import Any

from loopcanary.protocols.plugins import TracerPort
from loopcanary.protocols.tracing import AwaitImport
from loopcanary.tracers.locks import describe
from loopcanary.tracers.locks.asyncio_tasks import AsyncioTasks
from loopcanary.tracers.locks.hooks import LockHooks
from loopcanary.tracers.locks.primitives import ANYIO, TRIO, Primitive
from loopcanary.tracers.locks.tasks import LoopTasks, Lost
from loopcanary.tracers.locks.watch import Cycle, Leak, LoopWatch

_UVLOOP = "uvloop"


class LockTracer:
    """Reports `deadlock` and `lock-leak`."""

    name = "locks"

    def __init__(
        self,
        owns: Callable[[str], bool],
        await_import: AwaitImport,
        *,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`owns`: whether a file is the program's own code; called on loops' threads."""
        self._owns = owns
        self._waits = [
            await_import((ANYIO,), lambda: self._contain(self._put_in_anyio)),
            await_import((TRIO,), lambda: self._contain(self._put_in_trio)),
            await_import((_UVLOOP,), lambda: self._contain(self._put_in_uvloop)),
        ]
        self._now_ns = now_ns
        self._watches: weakref.WeakKeyDictionary[Any, LoopWatch] = weakref.WeakKeyDictionary()

    def init(self, desk: TracerPort) -> None:
        """See protocols.plugins.Tracer."""
        self._desk = desk
        self._hooks = LockHooks(self._contended, desk.failed, self._begins)

    def start(self) -> None:
        """See protocols.plugins.Tracer."""
        self._hooks.put_in()
        for wait in self._waits:
            wait.start()

    def stop(self) -> None:
        """See protocols.plugins.Tracer."""
        for wait in self._waits:
            wait.cancel()
        self._hooks.take_out()
        watches, self._watches = self._watches, weakref.WeakKeyDictionary()
        for watch in tuple(watches.values()):
            watch.stop()

    def cycle(self, loop: str, cycle: Cycle) -> None:
        """See watch.LockReceiver."""
        began_wall_ns = time.time_ns() - cycle.waited_ns
        self._desk.report(describe.deadlock(cycle, began_wall_ns, loop, self._owns))

    def leak(self, loop: str, leak: Leak) -> None:
        """See watch.LockReceiver."""
        began_wall_ns = time.time_ns() - leak.waited_ns
        self._desk.report(describe.lock_leak(leak, began_wall_ns, loop, self._owns))

    def lost(self, loop: str, lost: Lost, waited_ns: int) -> None:
        """See watch.LockReceiver."""
        self._desk.report(describe.lost_waits(lost, waited_ns, time.time_ns() - waited_ns, loop, self._owns))

    def _put_in_uvloop(self) -> None:
        self._hooks.put_in_loop(sys.modules[_UVLOOP].Loop)

    def _put_in_anyio(self) -> None:
        self._hooks.put_in_anyio(sys.modules[ANYIO])

    def _put_in_trio(self) -> None:
        self._hooks.put_in_trio(sys.modules[TRIO], self._contended_in_trio)

    def _begins(self, loop: Any) -> None:
        kind = type(loop)
        # What has timers of its own, such as a loop in a test, gets none of ours.
        if kind.call_at is asyncio.BaseEventLoop.call_at or kind.__module__.partition(".")[0] == _UVLOOP:
            self._watch_of(loop, lambda: AsyncioTasks(loop)).begin()

    def _contended(self, lock: Primitive) -> None:
        loop = asyncio._get_running_loop()
        if loop is not None:
            self._watch_of(loop, lambda: AsyncioTasks(loop)).contended(lock)

    def _contended_in_trio(self, lock: Primitive) -> None:
        from loopcanary.tracers.locks.trio_tasks import TrioTasks, root

        outermost = root()
        if outermost is not None:
            self._watch_of(outermost, TrioTasks).contended(lock)

    def _watch_of(self, loop: Any, tasks: Callable[[], LoopTasks]) -> LoopWatch:
        """`loop`: a loop, or the outermost task of a run of trio. Its own thread."""
        watch = self._watches.get(loop)
        if watch is None:
            watch = self._watches[loop] = LoopWatch(
                tasks=tasks(),
                notes=self._hooks.notes,
                found=self,
                contain=self._contain,
                now_ns=self._now_ns,
            )
        return watch

    def _contain(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - a callback of the program's loop
            self._desk.failed(error)
