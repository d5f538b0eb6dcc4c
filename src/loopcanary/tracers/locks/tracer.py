"""The tracer of locks between tasks of asyncio, its own and anyio's."""

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
from loopcanary.tracers.locks.hooks import LockHooks
from loopcanary.tracers.locks.primitives import ANYIO, Primitive
from loopcanary.tracers.locks.watch import Cycle, Leak, LoopWatch


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
        self._anyio = await_import((ANYIO,), lambda: self._contain(self._put_in_anyio))
        self._now_ns = now_ns
        self._watches: weakref.WeakKeyDictionary[Any, LoopWatch] = weakref.WeakKeyDictionary()

    def init(self, desk: TracerPort) -> None:
        """See protocols.plugins.Tracer."""
        self._desk = desk
        self._hooks = LockHooks(self._contended, desk.failed)

    def start(self) -> None:
        """See protocols.plugins.Tracer."""
        self._hooks.put_in()
        self._anyio.start()

    def stop(self) -> None:
        """See protocols.plugins.Tracer."""
        self._anyio.cancel()
        self._hooks.take_out()
        for watch in tuple(self._watches.values()):
            watch.stop()

    def cycle(self, loop: Any, cycle: Cycle) -> None:
        """See watch.LockReceiver."""
        began_wall_ns = time.time_ns() - cycle.waited_ns
        self._desk.report(describe.deadlock(cycle, began_wall_ns, loop, self._owns))

    def leak(self, loop: Any, leak: Leak) -> None:
        """See watch.LockReceiver."""
        began_wall_ns = time.time_ns() - leak.waited_ns
        self._desk.report(describe.lock_leak(leak, began_wall_ns, loop, self._owns))

    def _put_in_anyio(self) -> None:
        self._hooks.put_in_anyio(sys.modules[ANYIO])

    def _contended(self, lock: Primitive) -> None:
        loop = asyncio.get_running_loop()
        watch = self._watches.get(loop)
        if watch is None:
            watch = LoopWatch(
                loop=weakref.ref(loop),
                notes=self._hooks.notes,
                found=self,
                contain=self._contain,
                now_ns=self._now_ns,
            )
            self._watches[loop] = watch
        watch.contended(lock)

    def _contain(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - a callback of the program's loop
            self._desk.failed(error)
