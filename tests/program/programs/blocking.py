"""What callbacks block with that are to be seen, on a busy machine, too."""

from __future__ import annotations

import time
from collections.abc import Iterator

import loopcanary

LONG_S = 0.15
"""A stall by the default threshold of 100 ms."""
_GIVES_UP_S = 60


def until_sampled(seconds: float) -> Iterator[float]:
    """Yields how long to sleep, again and again: `seconds` at first. On a busy machine more, until the
    watcher had a core and took a sample, and until sleep outweighs the wait for a core after it. The caller
    sleeps, so that the blocking call is in its own line."""
    began, asked = time.monotonic(), seconds
    before = _samples()
    yield asked
    while True:
        # One that was being taken as this began is of what was before.
        is_sampled = before is None or (_samples() or 0) > before + 1
        lasted = time.monotonic() - began
        if (is_sampled and asked > 0.8 * lasted) or lasted > _GIVES_UP_S:
            return
        asked += lasted
        yield lasted


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
