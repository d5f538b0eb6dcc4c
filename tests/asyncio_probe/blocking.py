"""What the callbacks of these tests block with."""

from __future__ import annotations

import time

import loopcanary

LONG_S = 0.15
"""A stall by the default threshold of 100 ms."""
_GIVES_UP_S = 10


def slow():
    """Blocks for LONG_S; on a crowded machine until the watchdog got to run and took a sample of it."""
    before = _samples()
    time.sleep(LONG_S)
    until = time.monotonic() + _GIVES_UP_S
    while before is not None and _samples() == before and time.monotonic() < until:
        time.sleep(0.05)


def _samples() -> int | None:
    """How many were taken; None where nothing is watched."""
    return loopcanary.statistics().get("samples_taken")
