"""What a program knows of its own stall, in a small shared file: a few words written, no system call.

A write would let go of the GIL in the middle of what is measured, and would show watchers a moment that
is not there without it.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

SIZE = 4096
_WORDS = struct.Struct("<5Q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What the program wrote. Times are CLOCK_MONOTONIC in nanoseconds; 0 is not written."""

    began_ns: int
    ended_ns: int
    thread: int
    plays_ns: int
    """When the program began to play in its loop,"""
    played_ns: int
    """and when it ended."""
    """The stalled thread, as the kernel numbers it."""

    @property
    def duration_ms(self) -> float | None:
        """How long it stalled; None where it never ended."""
        return (self.ended_ns - self.began_ns) / 1e6 if self.ended_ns else None


def create(path: Path) -> None:
    """An empty file for one run."""
    path.write_bytes(bytes(SIZE))


def read(path: Path) -> Truth:
    """What the program wrote, also while it runs."""
    words = _WORDS.unpack_from(path.read_bytes())
    return Truth(**dict(zip(Truth.__dataclass_fields__, words, strict=True)))


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
