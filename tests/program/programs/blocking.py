"""What callbacks block with that are to be seen, on a busy machine, too."""

from __future__ import annotations

import time
from collections.abc import Iterator

import loopcanary

LONG_S = 0.15
"""A stall by the default threshold of 100 ms."""
_GIVES_UP_S = 25  # four blocks of a test, each up to twice as long, end before the limit of a test


def until_sampled(seconds: float) -> Iterator[float]:
    """Yields how long to sleep, again and again: `seconds` at first. On a busy machine more, until the
    watcher had a core and took most of its samples in a sleep, and until sleep outweighs the wait for a core
    after it. The caller sleeps, so that the blocking call is in its own line."""
    began, asked, length = time.monotonic(), 0.0, seconds
    first, in_sleep = _samples(), 0
    while True:
        before = _samples() or 0
        yield length
        asked += length
        now = _samples() or 0
        # One that was being taken as the sleep began is of what was before.
        in_sleep += max(now - before - 1, 0)
        is_sampled = first is None or in_sleep >= max(1, (now - first) / 2)
        lasted = time.monotonic() - began
        if (is_sampled and asked > 0.8 * lasted) or lasted > _GIVES_UP_S:
            return
        length = lasted


def slow() -> None:
    """Blocks for LONG_S, or until it was sampled."""
    for seconds in until_sampled(LONG_S):
        time.sleep(seconds)


slept: list[tuple[str, int]] = []
"""Of each `block`: whose it was, and the wall clock's nanoseconds in its middle (tests/loops/slept.py)."""


def block(function: str, seconds: float = 0.25) -> None:
    """Blocks in the name of that function, which calls."""
    begin_ns = time.time_ns()
    for each in until_sampled(seconds):
        time.sleep(each)
    slept.append((function, (begin_ns + time.time_ns()) // 2))


def _samples() -> int | None:
    """How many were taken, by either engine; None where nothing is watched."""
    counts = loopcanary.statistics()
    return counts.get("samples_taken", counts.get("samples"))
