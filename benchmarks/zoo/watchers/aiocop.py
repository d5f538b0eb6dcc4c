"""aiocop: its four calls, and its callback."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

from zoo.observation import Frame, Report
from zoo.watchers import THRESHOLD_MS, Run, launched, note, noted

PACKAGE = "aiocop"
_PLACE = re.compile(r"(?P<file>[^\s<>\"']+\.py):(?P<line>\d+):(?P<function>[\w.<>]+)")
# It names audit events, whose kinds these are. Its other word, cpu_blocking, is of a callback without any.
_EVENTS = {
    "time.sleep": ("sleep",),
    "socket.getaddrinfo": ("dns",),
    "socket.gethostby": ("dns",),
    "socket.": ("network-io",),
    "ssl.": ("network-io",),
    "http.": ("network-io",),
    "urllib.": ("network-io",),
    "subprocess.": ("subprocess",),
    "os.system": ("subprocess",),
    "os.fork": ("subprocess", "native-cpu"),
    "open": ("disk-io",),
    "os.": ("disk-io",),
    "io.": ("disk-io",),
    "import": ("import",),
    "sqlite3.": ("disk-io", "lock"),
    "fcntl.": ("lock",),
}
_REASONS = {"cpu_blocking": ("cpu", "native-cpu")}


def command(run: Run) -> list[str]:
    """Started from code."""
    return launched(run, "aiocop")


@contextlib.asynccontextmanager
async def around() -> AsyncIterator[None]:
    """As its README."""
    import aiocop

    aiocop.patch_audit_functions()
    aiocop.start_blocking_io_detection()
    aiocop.detect_slow_tasks(threshold_ms=THRESHOLD_MS, on_slow_task=_told)
    aiocop.activate()
    yield


def _told(event: Any) -> None:
    if not event.exceeded_threshold:  # it reports each harmless open() as well
        return
    samples = [str(sample["trace"]) + "\n" + str(sample["entry_point"]) for sample in event.cpu_stack_samples]
    events = [str(one["trace"]) + "\n" + str(one["entry_point"]) for one in event.blocking_events]
    note(
        duration_ms=event.elapsed_ms,
        reason=event.reason,
        events=[one["event"] for one in event.blocking_events],
        text="\n".join(events + samples),
    )


def reports(run: Run) -> Sequence[Report]:
    """What its callback was told."""
    return [
        Report(
            frames=places_in(told["text"]),
            causes=words_for(told["reason"], told["events"]),
            duration_ms=told["duration_ms"],
            told_ns=told["told_ns"],
        )
        for told in noted(run)
    ]


def places_in(text: str) -> tuple[Frame, ...]:
    """The frames it writes as FILE:LINE:FUNCTION."""
    return tuple(
        Frame(found["file"], found["function"], int(found["line"])) for found in _PLACE.finditer(text)
    )


def words_for(reason: str, events: Sequence[str]) -> tuple[str, ...]:
    """All that its reason and its events may mean."""
    words = set(_REASONS.get(reason, ()))
    for event in events:
        words.update(next((kinds for start, kinds in _EVENTS.items() if event.startswith(start)), ()))
    return tuple(sorted(words))
