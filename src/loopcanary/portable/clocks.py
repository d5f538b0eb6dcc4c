"""CPU time of single threads, as the kernel counts it; Linux only."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from loopcanary.model.evidence import Collection, KernelView
from loopcanary.patches import Patches
from loopcanary.whose_exception import ours_of

_SCHEDSTAT = "/proc/self/task/{tid}/schedstat"
_SCHEDSTAT_BYTES = 96
_REFRESH_NS = 100_000_000
_THREADS_MAX = 64
_PER_THREAD, _SCHED = 4, 2
"""The kernel's own encoding of a thread's CPU clock (include/linux/posix-timers_types.h)."""


class _Queued(NamedTuple):
    """Run-queue time of a thread, and when it was read."""

    ns: int
    at_ns: int


class ThreadClocks:
    """Reads on-CPU and run-queue time of threads of this process. Watchdog thread.

    No state letter and no system call: both would be of the moment after the reader let the GIL go, when
    a computing thread looks as if it slept. Sums do not suffer from that. The CPU clock costs one call
    that keeps the GIL; the run queue costs a file, and each of its calls lets the GIL go, for which we
    then wait as long as a busy program pleases: so that is read ten times a second at most. No descriptor
    is kept: a program that closes all it did not open would leave us with one of its own.
    """

    def __init__(self) -> None:
        self._queued: dict[int, _Queued] = {}
        self._works = sys.platform.startswith("linux")

    def read(self, tid: int, now_ns: int) -> KernelView | None:
        """The thread's sums; None where the platform has none. May let the GIL go."""
        if not self._works or tid <= 0:
            return None
        try:
            on_cpu_ns = time.clock_gettime_ns((~tid << 3) | _PER_THREAD | _SCHED)
        except ours_of(OSError, OverflowError, ValueError):
            return None  # No such thread any more.
        return KernelView(on_cpu_ns=on_cpu_ns, run_queue_ns=self.run_queue_ns(tid, now_ns))

    @staticmethod
    def process_ns() -> int:
        """CPU time of the whole process."""
        return time.process_time_ns()

    def run_queue_ns(self, tid: int, now_ns: int, stale_ns: int = _REFRESH_NS) -> int:
        """How long the thread has waited for a CPU, as of `stale_ns` ago or later; 0 where not known."""
        known = self._queued.get(tid)
        if known is not None and now_ns - known.at_ns < stale_ns:
            return known.ns
        if not self._works or tid <= 0:
            return 0
        if len(self._queued) >= _THREADS_MAX:
            self._queued.clear()
        ns = max(_read_run_queue_ns(tid), known.ns if known is not None else 0)
        self._queued[tid] = _Queued(ns, now_ns)
        return ns


def _read_run_queue_ns(tid: int) -> int:
    """Second field of schedstat; 0 where the kernel was built without."""
    try:
        descriptor = os.open(_SCHEDSTAT.format(tid=tid), os.O_RDONLY | os.O_CLOEXEC)
    except ours_of(OSError):
        return 0
    try:
        return int(os.read(descriptor, _SCHEDSTAT_BYTES).split()[1])
    except ours_of(OSError, ValueError, IndexError):
        return 0
    finally:
        os.close(descriptor)


_SHORTEST_NS = 1_000_000
"""Collections of the youngest generation come by the thousand and explain no stall."""
_KEPT_MAX = 64
_COLLECTING_MAX = 1024


class CollectionLog:
    """The last collections that took long enough to matter."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._patches = Patches()
        self._begin_ns: int | None = None
        self._collections: deque[Collection] = deque(maxlen=_KEPT_MAX)
        self._total_ns: Counter[int] = Counter()

    def start(self) -> None:
        """Begins to note. Any thread."""
        callbacks = getattr(gc, "callbacks", None)  # PyPy has none
        if callbacks is not None and self._note not in callbacks:
            callbacks.append(self._note)
            self._patches.hook("gc.callbacks")

    def stop(self) -> None:
        """Takes the callback back. Any thread."""
        callbacks = getattr(gc, "callbacks", None)
        if callbacks is not None and self._note in callbacks:
            callbacks.remove(self._note)
            self._patches.take_back()

    def between(self, begin_ns: int, end_ns: int) -> tuple[Collection, ...]:
        """Collections of any thread that overlap with a stall."""
        return tuple(
            one for one in self._collections.copy() if one.begin_ns < end_ns and one.end_ns > begin_ns
        )

    def over_at(self, now_ns: int) -> tuple[Collection, ...]:
        """Collections of any thread that were over by then."""
        return tuple(one for one in self._collections.copy() if one.end_ns <= now_ns)

    def total_ns(self, tid: int) -> int | None:
        """Time that this thread spent in collections, short ones as well; None where nothing is noted."""
        return self._total_ns[tid] if getattr(gc, "callbacks", None) is not None else None

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        # Any thread, inside a collection. One runs at a time (Modules/gcmodule.c: `collecting`).
        if phase == "start":
            self._begin_ns = self._clock()
            return
        begin_ns, self._begin_ns = self._begin_ns, None
        now_ns = self._clock()
        if begin_ns is None:
            return
        tid = threading.get_native_id()
        if tid not in self._total_ns and len(self._total_ns) >= _COLLECTING_MAX:
            self._total_ns.clear()
        self._total_ns[tid] += now_ns - begin_ns
        if now_ns - begin_ns < _SHORTEST_NS:
            return
        self._collections.append(
            Collection(
                begin_ns=begin_ns,
                end_ns=now_ns,
                tid=tid,
                generation=info.get("generation", 0),
                collected=info.get("collected", 0),
                uncollectable=info.get("uncollectable", 0),
            )
        )
