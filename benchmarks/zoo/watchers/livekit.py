"""The loop monitor of livekit-agents: start_monitoring, and the reports that it makes of each block."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from zoo.observation import Report, frames_in
from zoo.watchers import THRESHOLD_MS, Run, launched, note, noted

PACKAGE = "livekit-agents"


def command(run: Run) -> list[str]:
    """Started from code."""
    return launched(run, "livekit")


@contextlib.asynccontextmanager
async def around() -> AsyncIterator[None]:
    """As its worker does. The hook is how "tests and integrations may observe reports"."""
    from livekit.agents.telemetry import loop_monitor

    thresholds = loop_monitor.LoopMonitorThresholds(warn=THRESHOLD_MS / 1e3, error=0.5)
    loop = asyncio.get_running_loop()
    monitor = loop_monitor.start_monitoring(loop, thresholds=thresholds)
    assert monitor is not None
    monitor._on_report = _told  # noqa: SLF001 - see above
    yield
    loop_monitor.stop_monitoring(loop)


def _told(report: Any) -> None:
    note(
        duration_s=report.duration,
        began_ns=int(report.started_at * 1e9),
        gc_s=report.gc_time,
        cpu_s=report.cpu_time,
        descheduled=report.process_descheduled,
        importing=report.importing,
        text="\n".join(report.stacks),
    )


def reports(run: Run) -> Sequence[Report]:
    """Its reports, with the cause that its fields say."""
    return [
        Report(
            frames=frames_in(told["text"]),
            causes=words_for(told),
            duration_ms=told["duration_s"] * 1e3,
            told_ns=told["told_ns"],
            excused=told["descheduled"],
        )
        for told in noted(run)
    ]


def words_for(told: dict[str, Any]) -> tuple[str, ...]:
    """What its fields say, the plainest first."""
    if told["descheduled"]:
        return ("host",)
    if told["importing"]:
        return ("import",)
    if told["gc_s"] >= told["duration_s"] / 2:
        return ("gc",)
    if told["cpu_s"] >= told["duration_s"] / 2:
        return ("cpu", "native-cpu")
    return ()
