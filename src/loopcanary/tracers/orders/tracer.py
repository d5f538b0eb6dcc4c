"""The tracer of the orders in which threads acquire locks."""

from __future__ import annotations

import _thread
import os
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from queue import Queue
from typing import TYPE_CHECKING, Any

from loopcanary.model.issues.lock_orders import LockOrder, TakenOrder
from loopcanary.model.stack_frame import StackFrame
from loopcanary.protocols.plugins import TracerPort
from loopcanary.tracers.places import Owns

if TYPE_CHECKING:
    from loopcanary._native import Native

_WAIT = threading.Condition.wait.__code__
_GET = Queue.get.__code__
_ENTER = ExitStack.enter_context.__code__
_PLACES_MAX = 1000
_Frame = tuple[str, str, str, int]
"""File, qualified name, name, line."""
_Taken = tuple[str, str, str, _Frame, tuple[_Frame, ...]]
"""Thread, what it holds and takes, where it acquired the first, where it takes the second."""
_LAST_S = 1.0
"""How long `stop` waits until what was found is reported."""


class OrderTracer:
    """Reports `lock-order`. The engine notes each acquire (native/probes/orders/held.h); a thread of ours,
    which the program does not see, sleeps until it has found a circle."""

    name = "orders"

    def __init__(self, native: Native, owns: Owns) -> None:
        """`owns`: whether a file is the program's own code; called on the tracer's thread."""
        self._native = native
        self._owns = owns
        self._thread: Any = None
        self._pid = 0
        self._told: set[frozenset[tuple[str, int, int]]] = set()

    def init(self, desk: TracerPort) -> None:
        """See protocols.plugins.Tracer."""
        self._desk = desk

    def start(self) -> None:
        """See protocols.plugins.Tracer. RuntimeError: the native engine does not run, or another library has
        taken the place of `threading`'s locks."""
        files = tuple(code.co_filename for code in (_WAIT, _GET, _ENTER))
        threads: Any = threading
        active = threads._active  # noqa: SLF001 - threads by ident, for their names
        self._native.orders_start(_thread.LockType, _thread.RLock, _WAIT, files, active)
        self._pid = os.getpid()
        self._thread = self._native.start_thread(self._report_all)

    def stop(self) -> None:
        """See protocols.plugins.Tracer."""
        self._native.orders_stop()
        thread, self._thread = self._thread, None
        if os.getpid() != self._pid:
            while self._native.orders_take() is not None:
                pass  # the parent reports them
        elif thread is not None:
            self._native.join_thread(thread, _LAST_S)

    def counts(self) -> dict[str, int]:
        """See protocols.plugins.Tracer."""
        orders, circles = self._native.orders_lost()
        return {"orders_lost": orders, "circles_lost": circles}

    def _report_all(self) -> None:
        try:
            while self._native.orders_wait():
                if (circle := self._native.orders_take()) is not None:
                    self._report(circle)
        except Exception as error:  # noqa: BLE001 - the last of this thread
            self._thread = None
            self._desk.failed(error)

    def _report(self, circle: Sequence[_Taken]) -> None:
        """Once for each set of places: locks of many objects are acquired by the same lines."""
        places = frozenset((frames[0][0], frames[0][3], held_at[3]) for _, _, _, held_at, frames in circle)
        if places in self._told:
            return
        if len(self._told) < _PLACES_MAX:
            self._told.add(places)
        self._desk.report(self._issue(circle))

    def _issue(self, circle: Sequence[_Taken]) -> LockOrder:
        names = lock_names([(holds, takes) for _, holds, takes, _, _ in circle])
        orders = tuple(
            TakenOrder(
                thread=thread,
                holds=name,
                takes=next_name,
                held_at=(self._frame(*held_at),),
                frames=tuple(self._frame(*frame) for frame in frames),
            )
            for (thread, _, _, held_at, frames), name, next_name in zip(
                circle, names, (*names[1:], names[0]), strict=True
            )
        )
        return LockOrder(began_wall_ns=time.time_ns(), duration_ns=0, thread=orders[0].thread, orders=orders)

    def _frame(self, file: str, qualname: str, name: str, line: int) -> StackFrame:
        return StackFrame(function=name, qualname=qualname, file=file, line=line, in_app=self._owns(file))


def lock_names(circle: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """What each order's first lock is called: one name for each lock, and different ones.

    Args:
        circle: of each order what its thread calls the lock that it holds, and the one that it takes.
    """
    taken = [takes for _, takes in circle]
    names = [
        min(holds, before, key=_says) for (holds, _), before in zip(circle, (taken[-1], *taken), strict=False)
    ]
    return tuple(
        f"{name} #{names[: index + 1].count(name)}" if names.count(name) > 1 else name
        for index, name in enumerate(names)
    )


def _says(name: str) -> int:
    """Attributes say more than variables, and these more than none."""
    return 0 if "." in name else 1 if "'" in name else 2
