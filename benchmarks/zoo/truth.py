"""What a program knows of its own stall, in a small shared file: two words written, no system call.

A write would let go of the GIL in the middle of what is measured, and would show watchers a moment that
is not there without it.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

SIZE = 4096
_WORDS = struct.Struct("<6Q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What the program wrote. Times are CLOCK_MONOTONIC in nanoseconds; 0 is not written."""

    began_ns: int
    ended_ns: int
    waited_before_ns: int
    """How long the stalled thread had been ready and not run when it began."""
    waited_after_ns: int
    """The same when it ended."""
    process: int
    thread: int
    """The stalled thread, as the kernel numbers it."""

    @property
    def duration_ms(self) -> float | None:
        """How long it stalled; None where it never ended."""
        return (self.ended_ns - self.began_ns) / 1e6 if self.ended_ns else None

    @property
    def waited_for_cpu_ms(self) -> float:
        """How long of the stall the thread was ready and not run; 0 where that is not known."""
        return max(self.waited_after_ns - self.waited_before_ns, 0) / 1e6


def create(path: Path) -> None:
    """An empty file for one run."""
    path.write_bytes(bytes(SIZE))


def read(path: Path) -> Truth:
    """What the program wrote, also while it runs."""
    words = _WORDS.unpack_from(path.read_bytes())
    return Truth(**dict(zip(Truth.__dataclass_fields__, words, strict=True)))


def waited_for_cpu_ns(thread: str = "thread-self") -> int:
    """How long a thread was ready and not run so far, by the kernel; 0 where it does not say.

    The thread as a folder of /proc: `PID/task/TID`.
    """
    try:
        with open(f"/proc/{thread}/schedstat") as file:
            return int(file.read().split()[1])
    except OSError:
        return 0


class TruthWriter:
    """The program's side. Any thread; not two at once."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), SIZE)
        self._words = [0] * len(Truth.__dataclass_fields__)

    def write(self, **words: int) -> None:
        """Sets some of the words."""
        for place, name in enumerate(Truth.__dataclass_fields__):
            if name in words:
                struct.pack_into("<Q", self._memory, place * 8, words[name])
