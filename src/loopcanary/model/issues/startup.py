"""A start of a program, from the begin of its process to the moment from which it is of use.

The phases are a tree in one list, each before what is inside it (`depth`), in order of their begins. The
original (Matrix, StartupTracer) knows three lengths; here any number, at least the words of PhaseKind.
"""

from __future__ import annotations

from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model.issues.facts import ReportedFacts
from loopcanary.model.issues.kind import IssueKind

PHASES_MAX = 400
"""The longest phases of a start that are kept; `left_out` counts the others."""


_OWN = "loopcanary"
"""The phase that is loopcanary's own."""


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
    MAIN = "main-module"
    """The main module, to its end."""
    LISTENING = "listening"
    """Until a socket listens."""
    TURN = "first-turn"
    IDLE = "first-idle"
    ANSWER = "first-answer"
    FRAME = "first-frame"
    OTHER = "other"


class CodeOrigin(Enum):
    """Where an imported module's code came from."""

    COMPILED = "compiled"
    """From its source: there was no compiled file, or none that could be used."""
    CACHED = "cached"
    """From a compiled file (.pyc)."""
    OTHER = "other"
    """It is built in, frozen or an extension; or nothing was loaded."""


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
    origin: CodeOrigin = CodeOrigin.OTHER
    """Of an import."""
    bytes_read: int = 0
    """By the import's loader, without those inside it."""
    major_faults: int = 0
    """Pages that the thread waited for, from the disk."""
    open: bool = False
    """It had not ended when its record did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    """A moment of a start, or after it."""

    kind: PhaseKind
    offset_ns: int
    """From the start's begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup(ReportedFacts):
    """A start. It is kept whether it was slow or not: only then starts can be compared."""

    kind = IssueKind.STARTUP
    start: StartKind = StartKind.UNKNOWN
    program: str = ""
    """The session's name, filled in by the desk; starts of one program are compared."""
    threshold_ns: int
    """Longer is slow; 0: no start is, as of a short record."""
    phases: tuple[Phase, ...] = ()
    left_out: int = 0
    """How many phases were not kept."""
    milestones: tuple[Milestone, ...] = ()
    """In order of time."""
    run_ns: int = 0
    """How long `loopcanary run` took before it became the program; no part of the start."""
    step_ns: int = 0
    """Steps of the clock that the begin was read from; 0: it is exact."""
    imports: int = 0
    """Modules that were imported."""
    compiled: int = 0
    """Those of them that had to be compiled."""
    bytes_read: int = 0
    """By their loaders."""
    major_faults: int = 0
    """Pages that the process waited for, from the disk."""
    cut: bool = False
    """The process ended before its start did."""

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
        return self.duration_ns > self.threshold_ns > 0

    @property
    def slowest(self) -> Phase | None:
        """The phase that took most time by itself, loopcanary's own left out; None: there are no phases."""
        theirs = (phase for phase in self.phases if phase.name != _OWN)
        return max(theirs, key=lambda phase: phase.self_ns, default=None)

    @property
    def own_ns(self) -> int:
        """What loopcanary itself added to it."""
        return sum(phase.duration_ns for phase in self.phases if phase.name == _OWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedImport:
    """One module that was not there yet. Times are monotonic."""

    name: str
    depth: int
    """Imports that it is inside of."""
    begin_ns: int
    end_ns: int | None
    """None: it had not ended."""
    origin: CodeOrigin
    bytes_read: int
    major_faults: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartNotes:
    """Moments are monotonic; None: it has not come."""

    process_ns: int
    """When the kernel made the process, in its steps; before that, where `run_ns` is none, is nothing."""
    step_ns: int
    """Of that clock."""
    run_ns: int | None
    """When `loopcanary run` became the program."""
    hook_ns: int | None
    """loopcanary's first line, in the middle of the site module."""
    watched_ns: int
    """The engine runs."""
    site_over_ns: int | None
    main_ns: int | None
    """The main module's first import."""
    ready_ns: int | None
    listening_ns: int | None
    idle_ns: int | None
    answered_ns: int | None
    frame_ns: int | None
    over_ns: int | None
    """The main module's end."""
    major_faults: int
    imports: tuple[NotedImport, ...]
    left_out: int
    """Imports that there was no room for."""
    is_short: bool = False
    """Imports are not in it."""
    collections: int = 0
    """Of garbage, from when the engine ran until the start was over."""
    gc_ns: int = 0
    """That they took."""
    is_unfrozen: bool = False
    """Python read modules of its own from files that it could have had frozen."""

    @property
    def end_ns(self) -> int | None:
        """When the start is over; None: it is not. A short record is of programs that wait for something,
        and not of scripts that end."""
        ends = [ns for ns in (self.listening_ns, self.idle_ns, self.frame_ns) if ns is not None]
        return min(ends, default=None if self.is_short else self.over_ns)

    @property
    def last_ns(self) -> int:
        """The last moment of which something was noted."""
        moments = (self.site_over_ns, self.main_ns, self.ready_ns, self.answered_ns, self.over_ns)
        imports = (one.end_ns or one.begin_ns for one in self.imports)
        return max(self.watched_ns, *(ns or 0 for ns in moments), *imports)
