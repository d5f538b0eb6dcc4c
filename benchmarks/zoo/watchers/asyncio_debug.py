"""asyncio's debug mode: logs callbacks longer than the loop's slow_callback_duration, 0.1 s."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from zoo.observation import Frame, Report
from zoo.watchers import Run

PACKAGE = ""
_SLOW = re.compile(r"Executing (?P<what>.*) took (?P<seconds>[\d.]+) seconds")
_PLACE = re.compile(
    r"(?P<function>(?:[\w.]|<\w+>)+)\([^()]*\)(?: running| done, defined)? at (?P<file>[^:>]+):(?P<line>\d+)"
)


def command(run: Run) -> list[str]:
    """The program in debug mode."""
    return ["env", "PYTHONASYNCIODEBUG=1", run.python, str(run.program)]


def reports(run: Run) -> Sequence[Report]:
    """Its warnings, which logging prints on stderr where the program did not set it up."""
    return list(slow_callbacks(run.stderr))


def slow_callbacks(lines: Sequence[tuple[int, str]]) -> Iterator[Report]:
    """The warnings in these lines; aiodebug writes the same ones."""
    for told_ns, line in lines:
        if found := _SLOW.search(line):
            yield Report(
                frames=tuple(
                    Frame(place["file"], place["function"], int(place["line"]))
                    for place in _PLACE.finditer(found["what"])
                ),
                duration_ms=float(found["seconds"]) * 1e3,
                told_ns=told_ns,
            )
