"""The program's own truth about one block: what the reports are compared with."""

from __future__ import annotations

import resource
import time


class BlockClock:
    """Stamps of one block. `with clock:` encloses the blocking call; `before` and `after` are the last
    and first thing that the program does on the loop's thread outside the callback that blocks.

    The length that is reported lies between the two: not less than inside, not more than outside.
    """

    def __init__(self, name):
        self.name = name
        self.facts = {"name": name}

    def before(self):
        self.facts["wall_before_ns"] = time.time_ns()
        self.facts["before_ns"] = time.perf_counter_ns()

    def after(self):
        self.facts["after_ns"] = time.perf_counter_ns()
        self.facts["wall_after_ns"] = time.time_ns()

    def __enter__(self):
        self._usage = resource.getrusage(resource.RUSAGE_THREAD)
        self.facts["begin_ns"] = time.perf_counter_ns()

    def __exit__(self, *error):
        self.facts["end_ns"] = time.perf_counter_ns()


def cpu_of(work):
    """Seconds of this thread's CPU that `work()` takes: the least of a tenth of a second's tries.

    A core that is shared is slow for a while, and what is sized in that while would be too short later.
    """
    tries = [_cpu_once(work) for _ in range(3)]
    while sum(tries) < 0.1:
        tries.append(_cpu_once(work))
    return min(tries)


def _cpu_once(work):
    began = time.thread_time()
    work()
    return time.thread_time() - began


def sized(work, size, wanted_s):
    """The size at which `work(size)` takes so much CPU, where its cost grows with the size alone."""
    return max(1, round(size * wanted_s / cpu_of(lambda: work(size))))
