"""pyleak: `async with no_event_loop_blocking()` around the program, told by its logger."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from zoo.observation import Report, frames_in
from zoo.watchers import THRESHOLD_MS, Run, launched

PACKAGE = "pyleak"
_AT_ONCE = re.compile(r"Event loop blocked for (?P<seconds>[\d.]+)s \(threshold")
_DURATION = re.compile(r"Duration: (?P<seconds>[\d.]+)s")


def command(run: Run) -> list[str]:
    """Started from code."""
    return launched(run, "pyleak")


def around() -> AbstractAsyncContextManager[Any]:
    """As its README, with the action that logs."""
    import logging

    from pyleak import no_event_loop_blocking

    logging.basicConfig(level=logging.WARNING)
    return no_event_loop_blocking(action="log", threshold=THRESHOLD_MS / 1e3)


def reports(run: Run) -> Sequence[Report]:
    """What it tells at its end, with stacks; of a killed program only what it told at once."""
    at_once = [
        Report(duration_ms=float(found["seconds"]) * 1e3, told_ns=told_ns)
        for told_ns, line in run.stderr
        if (found := _AT_ONCE.search(line))
    ]
    at_end = [
        Report(frames=frames_in(block), duration_ms=float(found["seconds"]) * 1e3)
        for block in run.stderr_text.split("Event Loop Block")[1:]
        if (found := _DURATION.search(block))
    ]
    return at_end or at_once
