"""Blocks that last until the watchdog has seen them: on a busy machine, who watches needs a core, too."""

from __future__ import annotations

import time

import loopcanary

_SAMPLES = 5
_GIVES_UP_S = 60


def samples():
    return loopcanary.statistics().get("samples", 0)


def blocks():
    """Asking how many there are takes long on a busy machine, too: the sleep has most of the time."""
    begin, asleep_s = time.monotonic(), 0.0
    enough = samples() + _SAMPLES
    while (samples() < enough or asleep_s < 0.75 * (time.monotonic() - begin)) and asleep_s < _GIVES_UP_S:
        since = time.monotonic()
        time.sleep(0.15)
        asleep_s += time.monotonic() - since
