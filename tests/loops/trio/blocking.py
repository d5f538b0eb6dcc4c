"""What the tasks of these tests block with."""

from __future__ import annotations

import time

import loopcanary

LONG_S = 0.15
"""A stall by the default threshold of 100 ms."""
_GIVES_UP_S = 10


def slow():
    """Blocks for LONG_S; on a crowded machine until the watchdog, too, got to look at it, and until most of
    it was the sleep that was asked for, and not the wait for a core after it."""
    seen = loopcanary.statistics().get("samples_taken")
    began, asked = time.monotonic(), LONG_S
    time.sleep(asked)
    while (lasted := time.monotonic() - began) < _GIVES_UP_S:
        if asked > 0.8 * lasted and (seen is None or loopcanary.statistics().get("samples_taken") != seen):
            return
        asked += lasted
        time.sleep(lasted)
