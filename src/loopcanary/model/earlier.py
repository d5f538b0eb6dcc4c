"""What a loop ran shortly before a stall: long work by itself, short work as counts in between."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model.spelling import spelled


class WorkKind(Enum):
    """What was long: one callback, or a whole turn."""

    CALLBACK = "callback"
    TURN = "turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortWork:
    """What a loop did in a time without long work."""

    turns: int = field(metadata=spelled(absent=0))
    """Turns that began and ended in this time."""
    callbacks: int = field(metadata=spelled(absent=0))
    busy_ns: int = field(metadata=spelled(absent=0))
    """Time in which the loop ran."""
    """Time in which the loop ran."""
    idle_ns: int = field(metadata=spelled(absent=0))
    """Time in which the loop waited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongWork:
    """A callback of a lane, or a turn, that was long enough to be recorded by itself."""

    kind: WorkKind
    begin_ns: int
    end_ns: int
    name: str | None = None
    """Of a callback; None: not known."""
    task: str | None = None
    callbacks: int = 1
    """Of a turn, how many it ran."""
    longest_ns: int = 0
    """Of a turn, its longest callback; of a callback, its own time."""
    short: ShortWork | None = None
    """Since the long work before it or, within a turn that is recorded, since what was before it there; None:
    not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierWork:
    """A long callback or turn before a stall, as its timeline has it."""

    kind: WorkKind = WorkKind.TURN
    name: str | None = None
    """Of a callback; None: unknown."""
    task: str | None = None
    """Name of the task that a callback ran for; None: none, or unknown."""
    ago_ns: int
    """From its begin to that of the stall."""
    length_ns: int
    callbacks: int = field(metadata=spelled(absent=0))
    """Of a turn, how many it ran."""
    longest_ns: int = field(metadata=spelled(absent=0))
    """Of a turn, its longest callback; of a callback, its own time."""
    """Of a turn, its longest callback; of a callback, its own time."""
    short: ShortWork | None = field(default=None, metadata=spelled(apart=True))
