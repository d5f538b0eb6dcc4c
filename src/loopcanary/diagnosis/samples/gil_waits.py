"""Samples that found the thread awake in the middle of its wait for the GIL.

A thread that waits for the GIL wakes every 5 ms (`sys.setswitchinterval`) to ask its holder to let it go. A
timer wakes it, and a timer wakes the watchdog: so looks find it awake much more often than it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loopcanary.model import GilState, KernelView, Sample, ThreadReading

_MOVED_SHARE = 0.5
"""A thread that ran or waited for a core for less than this of a time waited for the GIL in it."""


def settle_gil_waits(
    samples: Sequence[Sample], begin_ns: int, before: ThreadReading | None
) -> tuple[Sample, ...]:
    """Counts as waiting for the GIL: samples of a ready thread while another one held the GIL, if the next
    other sample waits, the one before does (or there is none), and the thread's counters grew little.

    `begin_ns`: of the stall; `before`: a reading from before it. The samples come back in order of time.
    """
    settled = list(samples)
    since = None if before is None or before.at_ns > begin_ns else (begin_ns, before.kernel)
    open_from = 0
    for index, sample in enumerate(samples):
        if sample.waits_for_gil and sample.kernel is not None:
            if since is not None and _stood_still(since, (sample.at_ns, sample.kernel)):
                for between in range(open_from, index):
                    settled[between] = replace(samples[between], waits_for_gil=True)
            since, open_from = (sample.at_ns, sample.kernel), index + 1
        elif not _may_ask_for_it(sample):
            since = None
    return tuple(settled)


def _may_ask_for_it(sample: Sample) -> bool:
    return sample.gil is GilState.OTHER and sample.kernel is not None and sample.kernel.thread_state == "R"


def _stood_still(since: tuple[int, KernelView], until: tuple[int, KernelView]) -> bool:
    """Whether the counters grew little. The later sample slept: its counters hold all that was before."""
    (since_ns, then), (until_ns, now) = since, until
    moved_ns = now.on_cpu_ns + now.run_queue_ns - then.on_cpu_ns - then.run_queue_ns
    return moved_ns < _MOVED_SHARE * (until_ns - since_ns)
