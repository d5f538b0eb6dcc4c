"""CPU time of single threads, as the kernel counts it; Linux only."""

from __future__ import annotations

import os
import sys
import time
from typing import NamedTuple

from loopcanary.model.evidence import KernelView

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
        except (OSError, OverflowError, ValueError):
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
    except OSError:
        return 0
    try:
        return int(os.read(descriptor, _SCHEDSTAT_BYTES).split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    finally:
        os.close(descriptor)
