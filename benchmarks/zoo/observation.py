"""What a watcher said of one stall, whatever its output looks like."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a printed stack. `line` is 0 where only the function is named."""

    file: str
    function: str
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One report of a stall."""

    frames: tuple[Frame, ...] = ()
    """All frames by which it names the culprit: for loopcanary one, for a dump of stacks every one."""
    causes: tuple[str, ...] = ()
    """What it says of the cause, in the words of loopcanary's causes: all that its own word may mean."""
    holder: Frame | None = None
    """What another thread did that was guilty, where the watcher says so."""
    thread: str | None = None
    """The name of that thread."""
    duration_ms: float | None = None
    began_ns: int | None = None
    """CLOCK_REALTIME, where the watcher says when."""
    told_ns: int | None = None
    """CLOCK_MONOTONIC of when it was told, where that is known."""
    excused: bool = False
    """The watcher itself says that the machine did it, not the program."""
    queued: float | None = None
    """The share of the stall in which the thread was ready and not run, where the watcher says so."""
    bug: str | None = None
    """What the watcher counts as the same bug has the same one."""
    advice: str | None = None

    def to_json(self) -> dict[str, Any]:
        """For the results file."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Report:
        """The report that was written by to_json."""
        holder = data.get("holder")
        return cls(
            **data
            | {
                "causes": tuple(data["causes"]),
                "frames": tuple(Frame(**frame) for frame in data["frames"]),
                "holder": Frame(**holder) if holder else None,
            }
        )


_FRAME = re.compile(r'\s*File:? "(?P<file>[^"]+)", line (?P<line>\d+),? in (?P<function>.+?)\s*$')


def frames_in(text: str) -> tuple[Frame, ...]:
    """The frames of a stack as Python prints it, in the order they stand."""
    return tuple(
        Frame(found["file"], found["function"], int(found["line"]))
        for line in text.splitlines()
        if (found := _FRAME.match(line))
    )


def same_file(one: str, other: str) -> bool:
    """Whether both name one of the zoo's programs, whose names are all different."""
    return PurePath(one).name == PurePath(other).name
