"""Issues that are made of more than one callback: jank, late input, long idle work.

Their stacks, culprit and cause are those of the stalls that the engine saw on the same thread in the same
time; `stalls` has the ids. Where there was none, nothing single was long enough to be seen: the cause is
unknown.
"""

from __future__ import annotations

from dataclasses import field

from loopcanary.late_dataclass import dataclass
from loopcanary.model.figures import FrameFigures
from loopcanary.model.issues.facts import IssueFacts
from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.spelling import spelled
from loopcanary.model.stall import Culprit


@dataclass(frozen=True, slots=True, kw_only=True)
class LateFrame:
    """One of the worst frames of a slice."""

    began_wall_ns: int
    duration_ns: int
    dropped: int
    """Refreshes of the screen without a new frame."""
    stalls: tuple[str, ...] = field(default=(), metadata=spelled(name="stall_ids"))
    """Ids of the stalls in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """A piece of work that was done while an event waited."""

    name: str
    duration_ns: int
    """As far as it made the event wait."""
    culprit: Culprit | None = None
    """None: it was no stall."""
    stall: str | None = field(default=None, metadata=spelled(name="stall_id"))
    """Id of the stall that it was; None: it was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jank(IssueFacts):
    """A stretch of frames that people see stutter: see FrameFigures.is_janky."""

    kind = IssueKind.JANK
    figures: FrameFigures = field(metadata=spelled(name="frames"))
    worst: tuple[LateFrame, ...]
    """The worst frames, worst first."""

    @property
    def felt_ns(self) -> int:
        """The longest frame: the duration is that of a slice, which says nothing."""
        return self.figures.worst_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class InputLag(IssueFacts):
    """An input event whose handling ended long after it had arrived."""

    kind = IssueKind.INPUT
    event: str
    """Class and receiver."""
    queued_ns: int = field(metadata=spelled(absent=0))
    """How long it waited for the loop."""
    before: tuple[Handled, ...] = ()
    """What the thread did meanwhile, as far as it is known, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleLag(IssueFacts):
    """Idle work that kept the thread for long, or asked for itself anew without end."""

    kind = IssueKind.IDLE
    handler: str
    runs: int = 1
    """More than one: the loop never waited between them."""
