"""loopsentry: start and stop in the loop, and its file of events."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any

from zoo.observation import Report, frames_in
from zoo.watchers import THRESHOLD_MS, Run, launched

PACKAGE = "loopsentry"
_FOLDER = "sentry_logs"


def command(run: Run) -> list[str]:
    """Started from code."""
    return launched(run, "loopsentry")


@contextlib.asynccontextmanager
async def around() -> AsyncIterator[None]:
    """As its README."""
    from loopsentry import LoopSentry

    sentry = LoopSentry(base_dir=_FOLDER, threshold=THRESHOLD_MS / 1e3)
    sentry.start()
    yield
    sentry.stop()


def reports(run: Run) -> Sequence[Report]:
    """The blocks in its file."""
    lines = [
        line for path in (run.folder / _FOLDER).glob("*/*.jsonl") for line in path.read_text().splitlines()
    ]
    return list(blocks_in(json.loads(line) for line in lines))


def blocks_in(events: Iterable[dict[str, Any]]) -> Iterator[Report]:
    """Each block that began, with its duration where it is said to be over."""
    open_block: dict[str, Any] | None = None
    for event in events:
        if event["type"] == "block_started":
            open_block = event
        elif event["type"] == "block_resolved" and open_block is not None:
            yield _report(open_block, _seconds(event) * 1e3)
            open_block = None
    if open_block is not None:
        yield _report(open_block, None)


def _report(event: dict[str, Any], duration_ms: float | None) -> Report:
    return Report(frames=frames_in("".join(event.get("stack", ()))), duration_ms=duration_ms)


def _seconds(event: dict[str, Any]) -> float:
    return float(next(value for key, value in event.items() if "duration" in key))
