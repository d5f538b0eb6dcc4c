"""Findings of a text importer in the files of other monitors, before they become issues.

Every value comes from an untrusted file. assembly.importing, which makes issues of these findings, bounds the
values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.model import FindingRule, FoundAt


class Line(NamedTuple):
    """A line of a file, without its end and without what logcat wrote before it."""

    number: int
    """From 1."""
    text: str


class CodePlace(NamedTuple):
    """A frame as the JVM writes it."""

    owner: str
    """The class with its package; empty: unknown."""
    method: str
    file: str
    """Name of the file; empty: unknown."""
    line: int
    """0: unknown."""


class SeenCall(NamedTuple):
    """Calls of one method, a row of a tree."""

    depth: int
    id: int
    """The method's number in a mapping."""
    calls: int
    cost_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenStack:
    """The main thread at one moment."""

    at_wall_ns: int | None = None
    """None: not said."""
    frames: tuple[CodePlace, ...]
    """Innermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenThread:
    """Another thread."""

    name: str
    state: str = ""
    """As the JVM names it: RUNNABLE, Blocked."""
    frames: tuple[CodePlace, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuRow:
    """Load of the machine between two readings, in percent of all cores."""

    at_wall_ns: int
    busy: int
    app: int
    io_wait: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The device that the program ran on, without facts that identify a person (IMEI, user id)."""

    process: str = ""
    version: str = ""
    qualifier: str = ""
    model: str = ""
    android: str = ""
    cores: int = 0
    memory_bytes: int = 0
    network: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """Fields that all findings of other monitors have."""

    tool: str
    """Name of the tool that wrote it: `BlockCanary`."""
    lines: tuple[int, ...]
    """Numbers of the lines that it was read from."""
    device: Device = Device()
    began_wall_ns: int | None = None
    """None: not said."""
    scene: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked(_Noted):
    """The main thread was blocked."""

    duration_ns: int
    is_least: bool = False
    """Its end was not seen: it may have lasted longer."""
    ran_ns: int | None = None
    """CPU time of the thread; None: not said."""
    stacks: tuple[SeenStack, ...] = ()
    threads: tuple[SeenThread, ...] = ()
    cpu: tuple[CpuRow, ...] = ()
    memory_free_bytes: int | None = None
    notes: tuple[str, ...] = ()
    """Further facts of the text, a sentence each."""
    calls: tuple[SeenCall, ...] = ()
    """Each row before those inside it."""
    methods: Mapping[int, CodePlace] = field(default_factory=dict)
    """Names of the methods, where they came with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFrames(_Noted):
    """Figures of frames that were drawn in one scene."""

    drop_level: tuple[int, ...]
    """Frames at each of the five levels, best first."""
    drop_sum: tuple[int, ...]
    """Dropped frames at each."""
    fps: float | None = None
    refresh_hz: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenStart(_Noted):
    """A start of an app."""

    duration_ns: int
    is_warm: bool = False
    """The process existed before the start."""
    stages: tuple[tuple[str, int], ...] = ()
    """Stages one after the other: name, and duration in nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFinding(_Noted):
    """A defect that a monitor found."""

    rule: FindingRule
    at: FoundAt
    thread: str = "main"
    duration_ns: int = 0
    """0: not measured."""
    frames: tuple[CodePlace, ...] = ()
    """Innermost first."""
    figures: Mapping[str, int] = field(default_factory=dict)
    """By the names of model.ImportedFinding's."""
    advice: str | None = None
    """As the monitor gives it."""


Seen = Blocked | SeenFrames | SeenStart | SeenFinding


class TextImporter(Protocol):
    """Reads one format of text. Raises nothing, whatever the lines are."""

    words: str
    """What it reads, for `import --list`."""

    def find(self, lines: Sequence[Line], *, near_wall_ns: int) -> Iterator[Seen]:
        """What is in the lines.

        Args:
            lines: Of one file, or what one program wrote to logcat under one tag.
            near_wall_ns: When the lines were written, as far as is known: of dates without a year.
        """
