"""aiodebug: its log of slow callbacks, and its dumps of all threads' stacks when the loop hangs."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from zoo.observation import Report, frames_in
from zoo.watchers import THRESHOLD_MS, Run, launched
from zoo.watchers.asyncio_debug import slow_callbacks

PACKAGE = "aiodebug"
_DUMPS = "stacks"


def command(run: Run) -> list[str]:
    """Started from code."""
    return launched(run, "aiodebug")


@contextlib.asynccontextmanager
async def around() -> AsyncIterator[None]:
    """As its README: both features."""
    import aiodebug.hang_inspection
    import aiodebug.log_slow_callbacks

    Path(_DUMPS).mkdir()
    aiodebug.log_slow_callbacks.enable(THRESHOLD_MS / 1e3)
    dumper = aiodebug.hang_inspection.start(_DUMPS, interval=THRESHOLD_MS / 1e3)
    yield
    await aiodebug.hang_inspection.stop_wait(dumper)


def reports(run: Run) -> Sequence[Report]:
    """The log's lines, which know the duration, and the first dump of each hang, which knows the line."""
    dumps = sorted((run.folder / _DUMPS).glob("*-0.txt"))
    return [
        *slow_callbacks(run.stderr),
        *(Report(frames=frames_in(dump.read_text(errors="replace"))) for dump in dumps),
    ]
