"""How long a program's threads were ready and not run: looked at from outside, by the kernel's own counts."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path


class Waits:
    """Readings of all threads of a process, from time to time while it lives."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._readings: list[tuple[int, dict[str, int]]] = []

    def look(self) -> None:
        """Takes a reading."""
        waited: dict[str, int] = {}
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{self._process}/task").iterdir():
                with (
                    contextlib.suppress(OSError),
                    (thread / "schedstat").open() as file,
                ):
                    waited[thread.name] = int(file.read().split()[1])
        self._readings.append((time.monotonic_ns(), waited))

    def longest_ms(self, began_ns: int, ended_ns: int) -> float:
        """Of the thread that waited most in this time."""
        threads = {thread for _, waited in self._readings for thread in waited}
        return max((self.between_ms(int(thread), began_ns, ended_ns) for thread in threads), default=0.0)

    def longest_within_ms(self, window_ms: float, began_ns: int, ended_ns: int) -> float:
        """Of the thread that waited most in any window of this length, and in any time between two readings,
        which may be longer, from the last reading before the begin to the first after the end."""
        begin = max((at for at, _ in self._readings if at <= began_ns), default=began_ns)
        end = min((at for at, _ in self._readings if at >= ended_ns), default=ended_ns)
        readings = [(at, waited) for at, waited in self._readings if begin <= at <= end]
        longest_ns, first = 0, 0
        for last, (at, waited) in enumerate(readings):
            while first < last - 1 and at - readings[first][0] > window_ms * 1e6:
                first += 1
            before = readings[first][1]
            longest_ns = max(longest_ns, *(now - before.get(name, 0) for name, now in waited.items()), 0)
        return longest_ns / 1e6

    def between_ms(self, thread: int, began_ns: int, ended_ns: int) -> float:
        """Of one thread from the last reading before the begin to the first after the end, 0 for none."""
        name = str(thread)
        known = [(at_ns, waited[name]) for at_ns, waited in self._readings if name in waited]
        before = [waited for at_ns, waited in known if at_ns <= began_ns]
        after = [waited for at_ns, waited in known if ended_ns and at_ns >= ended_ns]
        if not known:
            return 0.0
        return ((after or [known[-1][1]])[0] - (before or [0])[-1]) / 1e6
