"""What machine, container and process did while a stall lasted: differences of readings around it."""

from __future__ import annotations

from loopcanary.model import HostReading, KernelView, StallEvidence, Surroundings

_POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}
"""SCHED_* of linux/sched.h."""


def make_surroundings(evidence: StallEvidence) -> Surroundings | None:
    """Over the window from the first to the last reading of the host; the thread's own figures from the
    first to the last sample. None where nothing was read."""
    faults, voluntary, involuntary = _of_thread(evidence)
    readings = evidence.host
    if not readings and faults is None and voluntary is None:
        return None
    window = readings[-1].at_ns - readings[0].at_ns if readings else 0
    last = readings[-1] if readings else HostReading(at_ns=0)
    return Surroundings(
        window_ns=max(0, window),
        system_cpu=_quotient(_grown(readings, "system_busy_ns"), _grown(readings, "system_total_ns")),
        stolen_cpu=_quotient(_grown(readings, "system_stolen_ns"), _grown(readings, "system_busy_ns")),
        process_cpu=_rate(_grown(readings, "process_cpu_ns"), window),
        throttled_ns=_grown(readings, "throttled_ns"),
        pressure_cpu=_share(_grown(readings, "pressure_cpu_ns"), window),
        pressure_memory=_share(_grown(readings, "pressure_memory_ns"), window),
        pressure_io=_share(_grown(readings, "pressure_io_ns"), window),
        major_faults=faults,
        voluntary_switches=voluntary,
        involuntary_switches=involuntary,
        memory_available_bytes=last.memory_available_bytes,
        memory_used_bytes=last.memory_used_bytes,
        nice=last.nice,
        policy=None if last.policy is None else _POLICIES.get(last.policy, str(last.policy)),
        cores=last.cores or None,
    )


def _grown(readings: tuple[HostReading, ...], name: str) -> int | None:
    """By how much a counter grew between its first and last known reading; None for fewer than two."""
    known = [value for reading in readings if (value := getattr(reading, name)) is not None]
    return max(0, known[-1] - known[0]) if len(known) > 1 else None


def _quotient(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else round(min(1.0, part / whole), 4)


def _rate(grown: int | None, window_ns: int) -> float | None:
    return None if grown is None or window_ns <= 0 else round(grown / window_ns, 4)


def _share(grown: int | None, window_ns: int) -> float | None:
    rate = _rate(grown, window_ns)
    return None if rate is None else min(1.0, rate)


def _of_thread(evidence: StallEvidence) -> tuple[int | None, int | None, int | None]:
    """Major faults, voluntary and involuntary switches of the thread between its samples. The switches are
    read with some samples only; the others hold 0. The reading before the stall tells none of them."""
    views = [sample.kernel for sample in evidence.samples if sample.kernel is not None]
    if len(views) < 2:
        return None, None, None
    faults = max(0, views[-1].major_faults - views[0].major_faults)
    switched = (
        next(filter(_tells_switches, views), None),
        next(filter(_tells_switches, reversed(views)), None),
    )
    return faults, _switches(switched, "voluntary_switches"), _switches(switched, "involuntary_switches")


def _tells_switches(view: KernelView) -> bool:
    return bool(view.voluntary_switches or view.involuntary_switches)


def _switches(views: tuple[KernelView | None, KernelView | None], name: str) -> int | None:
    first, last = views
    if first is None or last is None or first is last:
        return None
    return max(0, int(getattr(last, name)) - int(getattr(first, name)))
