"""asyncio-event-loop-monitor: its context manager, and its callback."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from zoo.observation import Frame, Report
from zoo.watchers import THRESHOLD_MS, Run, launched, note, noted

PACKAGE = "asyncio-event-loop-monitor"


def command(run: Run) -> list[str]:
    """Started from code."""
    return launched(run, "asyncio-event-loop-monitor")


@contextlib.asynccontextmanager
async def around() -> AsyncIterator[None]:
    """As its README."""
    from asyncio_event_loop_monitor import event_loop_monitor_ctx

    with event_loop_monitor_ctx(threshold_ms=float(THRESHOLD_MS), on_blocking_call=_told):
        yield


def _told(call: Any) -> None:
    note(name=call.method_name, duration_ms=call.duration_ms)


def reports(run: Run) -> Sequence[Report]:
    """What its callback was told: each enclosing call by its name, without a line."""
    return [
        Report(
            frames=(Frame("", told["name"].rpartition(".")[2]),),
            duration_ms=told["duration_ms"],
            told_ns=told["told_ns"],
        )
        for told in noted(run)
    ]
