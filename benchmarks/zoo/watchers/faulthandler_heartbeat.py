"""faulthandler.dump_traceback_later, armed anew by a heartbeat: the best recipe without a package."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence

from zoo import loops
from zoo.observation import Report, frames_in
from zoo.watchers import THRESHOLD_MS, Run, launched

PACKAGE = ""
LOOPS = tuple(loops.ALL)  # every loop has a timer that can be its heart
_DUMPS = "dumps.txt"


def command(run: Run) -> list[str]:
    """Started from code."""
    return launched(run, "faulthandler-heartbeat")


@contextlib.asynccontextmanager
async def around() -> AsyncIterator[None]:
    """A heartbeat of a fifth of the threshold, which arms the timer anew."""
    import faulthandler

    host, beat_s = loops.host(), THRESHOLD_MS / 5e3

    async def heart(dumps: int) -> None:
        while True:
            faulthandler.dump_traceback_later(THRESHOLD_MS / 1e3, file=dumps)
            await host.pause(beat_s)

    with open(_DUMPS, "w") as dumps:
        stop = host.beside(lambda: heart(dumps.fileno()))
        await host.pause(0)
        yield
        stop()
        faulthandler.cancel_dump_traceback_later()


def reports(run: Run) -> Sequence[Report]:
    """Each dump, of all threads."""
    path = run.folder / _DUMPS
    return list(dumps_in(path.read_text(errors="replace"))) if path.exists() else []


def dumps_in(text: str) -> Iterator[Report]:
    """The dumps, each of which begins with its timeout."""
    for dump in text.split("Timeout (")[1:]:
        yield Report(frames=frames_in(dump))
