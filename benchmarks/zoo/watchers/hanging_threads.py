"""hanging_threads: one call, and what it prints on stderr about threads that stay where they are."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence

from zoo import loops
from zoo.observation import Report, frames_in
from zoo.watchers import THRESHOLD_MS, Run, launched

PACKAGE = "hanging-threads"
LOOPS = tuple(loops.ALL)  # it looks at threads, whatever they run


def command(run: Run) -> list[str]:
    """Started from code."""
    return launched(run, "hanging-threads")


@contextlib.asynccontextmanager
async def around() -> AsyncIterator[None]:
    """As its README; it looks often enough to see a stall of the threshold."""
    from hanging_threads import start_monitoring

    monitor = start_monitoring(seconds_frozen=THRESHOLD_MS / 1e3, test_interval=10)
    yield
    monitor.stop()


def reports(run: Run) -> Sequence[Report]:
    """Each thread that it says hangs, with its stack."""
    return list(hangs_in(run.stderr))


def hangs_in(lines: Sequence[tuple[int, str]]) -> Iterator[Report]:
    """The stacks below each caption."""
    told_ns: int | None = None
    text: list[str] = []
    for at_ns, line in [*lines, (0, "---- end")]:
        if line.startswith("--") or " hangs " in line:
            if told_ns is not None:
                yield Report(frames=frames_in("".join(text)), told_ns=told_ns)
            told_ns, text = (at_ns if " hangs " in line else None), []
        else:
            text.append(line)
