"""A start of a program, from the begin of its process to the moment from which it is of use.

The phases are a tree in one list, each before what is inside it (`depth`), in order of their begins. The
original (Matrix, StartupTracer) knows three lengths; here any number, at least the words of PhaseKind.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.issues.reported import ReportedFacts

PHASES_MAX = 400
"""The longest phases of a start that are kept; `left_out` counts the others."""


class StartKind(Enum):
    """How much of the program the machine had at hand."""

    COLD = "cold"
    """Modules had to be compiled, or files to be read from the disk (major faults)."""
    WARM = "warm"
    UNKNOWN = "unknown"


class PhaseKind(Enum):
    """What a program does in a phase of its start."""

    INTERPRETER = "interpreter"
    """From the begin of the process, by the kernel, to the first line of Python."""
    SITE = "site"
    IMPORT = "import"
    """Of the module that the phase is named after, and of what it imports."""
    READY = "ready"
    """Until the application itself is built."""
    TURN = "first-turn"
    IDLE = "first-idle"
    ANSWER = "first-answer"
    FRAME = "first-frame"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """What a program did in a part of its start."""

    kind: PhaseKind = PhaseKind.OTHER
    name: str = ""
    """The module, or what the program calls it. Empty: the kind says it."""
    depth: int = 0
    """How many phases it is inside of."""
    offset_ns: int
    """From the start's begin to its own."""
    duration_ns: int
    self_ns: int
    """Without the phases inside it, kept or left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup(ReportedFacts):
    """A start. It is kept whether it was slow or not: only then starts can be compared."""

    kind = IssueKind.STARTUP
    start: StartKind = StartKind.UNKNOWN
    program: str = ""
    """The session's name, filled in by the desk; starts of one program are compared."""
    threshold_ns: int
    """Longer is slow."""
    phases: tuple[Phase, ...] = ()
    left_out: int = 0
    """How many phases were not kept."""

    @property
    def is_news(self) -> bool:
        """Whether it took longer than it should: one within its limit is kept for comparison."""
        return self.is_slow

    @property
    def searched(self) -> tuple[str, ...]:
        """Program, kind of start and phases."""
        return (self.program, self.start.value, *(phase.name for phase in self.phases))

    @property
    def is_slow(self) -> bool:
        """Whether it took longer than it should."""
        return self.duration_ns > self.threshold_ns

    @property
    def slowest(self) -> Phase | None:
        """The phase that took most time by itself; None: there are no phases."""
        return max(self.phases, key=lambda phase: phase.self_ns, default=None)
