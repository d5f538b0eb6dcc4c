"""What ANR-WatchDog (SalomonBrys) throws: `ANRError: Application Not Responding for at least 5000 ms.`, with
a `Caused by` for each thread, the main thread first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from loopcanary.importers.java import place_of
from loopcanary.protocols.imports import Blocked, CodePlace, Line, SeenStack, SeenThread

_MS = 1_000_000
_DEFAULT_MS = 5_000
"""The default time-out, for versions that do not say theirs."""
_HEAD = re.compile(
    r".{0,300}\bANRError: Application Not Responding(?: for at least (\d{1,12}) ms)?.{0,300}", re.ASCII
)
_SIGN = "ANRError"
_THREAD = re.compile(r"\s*Caused by: \S{0,200}ANRError\$\S{0,60}: (.{0,200}) \(state = ([A-Z_]{1,20})\)\s*")
_MORE = re.compile(r"\s*\.\.\. \d+ more\s*")
_THREADS_MAX = 300


class _Trace:
    """One error, as far as it was read."""

    def __init__(self, lasted_ms: int) -> None:
        self.lasted_ms = lasted_ms
        self.numbers: list[int] = []
        self.threads: list[tuple[str, str, list[CodePlace]]] = []

    def takes(self, text: str) -> bool:
        if found := _THREAD.fullmatch(text):
            self.threads.append((found[1], found[2], []))
            return True
        place = place_of(text)
        if place is None:
            return _MORE.fullmatch(text) is not None
        if self.threads:
            self.threads[-1][2].append(place)
        return True


class WatchdogImporter:
    words = "stack traces of ANR-WatchDog, of a file or in a logcat"

    def find(self, lines: Sequence[Line], *, near_wall_ns: int) -> Iterator[Blocked]:  # noqa: ARG002 - no date
        """An error ends before the first line that does not belong to it."""
        trace: _Trace | None = None
        for number, text in lines:
            if _SIGN in text and (found := _HEAD.fullmatch(text)):
                yield from _blocked(trace)
                trace = _Trace(int(found[1] or _DEFAULT_MS))
                trace.numbers.append(number)
            elif trace is not None and trace.takes(text):
                trace.numbers.append(number)
            elif trace is not None and text.strip():
                yield from _blocked(trace)
                trace = None
        yield from _blocked(trace)


def _blocked(trace: _Trace | None) -> Iterator[Blocked]:
    if trace is None or not trace.threads:
        return
    (name, state, frames), *others = trace.threads[:_THREADS_MAX]
    yield Blocked(
        tool="ANR-WatchDog",
        lines=tuple(trace.numbers),
        duration_ns=trace.lasted_ms * _MS,
        is_least=True,
        stacks=(SeenStack(frames=tuple(frames)),) if frames else (),
        threads=tuple(SeenThread(name=name, state=state, frames=tuple(of)) for name, state, of in others),
        notes=(f"Thread {name} was {state} when it was looked at.",),
    )


WATCHDOG = WatchdogImporter()
