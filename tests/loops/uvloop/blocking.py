"""What the callbacks of these tests block with."""

from __future__ import annotations

import time

import loopcanary

LONG_S = 0.15
"""A stall by the default threshold of 100 ms."""
_GIVES_UP_S = 10


def slow():
    """Blocks for LONG_S. On a crowded machine for longer: until the watchdog got to run and took a sample and
    until the sleep that was asked for, and not the wait for a core after it, is what it was about."""
    before = _samples()
    began = time.monotonic()
    asked = LONG_S
    time.sleep(asked)
    while (lasted := time.monotonic() - began) < _GIVES_UP_S:
        if asked > 0.8 * lasted and (before is None or _samples() != before):
            return
        asked += lasted
        time.sleep(lasted)


def _samples() -> int | None:
    """How many were taken; None where nothing is watched."""
    return loopcanary.statistics().get("samples_taken")
