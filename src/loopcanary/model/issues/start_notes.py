"""What was noted while a program started; tracers.start_phases makes the start of it."""

from __future__ import annotations

from loopcanary.late_dataclass import dataclass
from loopcanary.model.issues.startup import CodeOrigin


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
