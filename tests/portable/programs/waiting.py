"""Blocks that last until the watchdog has seen them: on a busy machine, who watches needs a core, too."""

from __future__ import annotations

import time

import loopcanary

_SAMPLES = 5
_GIVES_UP_S = 60


def samples():
    return loopcanary.statistics().get("samples", 0)


def blocks():
    enough, end = samples() + _SAMPLES, time.monotonic() + _GIVES_UP_S
    while samples() < enough and time.monotonic() < end:
        time.sleep(0.15)
