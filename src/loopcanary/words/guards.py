"""What was not held against the code, counted with reasons: stalls that were not reported, and what kept the
engine from looking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from loopcanary.model import Session
from loopcanary.words.text import count_of, printable

_UNREPORTED = {
    "stalls_undiagnosed": "because loopcanary failed to diagnose them",
    "stalls_suppressed_debugger": "while a debugger was attached",
    "stalls_suppressed_expected": "within their own time limit (`expect`, `watch`, `job_threshold`)",
    "stalls_suppressed_storm": "over the limit of stalls a minute",
    "stalls_dropped_only_concern": "without your own code (`only_concern`)",
    "stalls_dropped_meant": "on a package's own thread, which blocks by design",
    "stalls_dropped_ignore": "ignored by the configuration",
    "stalls_dropped_interceptor": "dropped by an interceptor",
    "stalls_dropped_no_slot": "lost (too many at once, too fast to be stored, or no memory left)",
    "stalls_dropped_ring_full": "lost (too many in a row)",
}
_LOST = {
    "calls_refused": "the process was not dumpable (it had changed its user), or a sandbox refused",
    "calls_no_descriptor": "no descriptor was free (ulimit -n)",
}


def guard_words(session: Session) -> Iterator[str]:
    """`not reported: 3 while a debugger was attached`, `the machine was suspended 2 times`; what did not
    happen is left out."""
    counts = session.statistics
    yield from unreported_words(counts)
    if counts.get("stalls_at_startup"):
        yield f"{count_of(counts['stalls_at_startup'], 'stall')} before the loop first waited"
    if counts.get("watchdog_late"):
        yield f"the watchdog was late {count_of(counts['watchdog_late'], 'time')}"
    if counts.get("suspends"):
        yield f"the machine was suspended {count_of(counts['suspends'], 'time')}"
    if counts.get("clock_steps"):
        yield f"the clock of the CPU stepped {count_of(counts['clock_steps'], 'time')}"
    for made in session.priority_changes:
        where = f"{printable(made.file)}:{made.line} in {printable(made.function)}"
        yield f"{printable(made.call)} changed how a thread is scheduled: {where}"
    yield from lost_words(counts)


def unreported_words(counts: Mapping[str, int]) -> Iterator[str]:
    """Stalls that were seen and not reported: how many, and why; nothing where there were none."""
    told = [f"{counts[name]:,} {why}" for name, why in _UNREPORTED.items() if counts.get(name)]
    if told:
        yield f"not reported: {', '.join(told)}"


def lost_words(counts: Mapping[str, int]) -> Iterator[str]:
    """Evidence that the process had no rights or room to take."""
    for name, why in _LOST.items():
        if counts.get(name):
            yield f"what {count_of(counts[name], 'thread')} waited in could not be read: {why}"
    if counts.get("failures_store"):
        yield f"the store failed {count_of(counts['failures_store'], 'time')}: stalls may be missing"
