"""What issues of every kind but stalls have."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

from loopcanary.late_dataclass import dataclass
from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.spelling import NEEDED, spelled
from loopcanary.model.stall import Cause, Culprit, Holder, Severity, StallState, WeightedStack


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueFacts:
    """Which process and thread, when, how long, and what was behind it."""

    id: str
    """Unique over sessions: `<session>-<kind>-<serial>`."""
    kind: ClassVar[IssueKind]
    fingerprint: str
    """The same for the same bug, in every run, on every host."""
    session: str
    pid: int
    thread: str
    """Name of the thread."""
    loop: str
    """Kind of loop."""
    title: str
    """One line for people."""
    scene: str | None
    """Where the user was; None: the program did not say."""
    began_wall_ns: int
    """When the first frame began, the event arrived, the work or the program began."""
    duration_ns: int
    """To the end of the last frame, pauses included; of the handling; of the work; of the start."""
    cause: Cause = Cause.UNKNOWN
    """Of the stalls in it; unknown without one."""
    culprit: Culprit | None = None
    """None: no stall was in it, or the cause strikes any code."""
    advice: str | None = None
    """None: nothing is known to help."""
    stalls: tuple[str, ...] = field(default=(), metadata=spelled(name="stall_ids"))
    """Ids of the stalls in it."""
    stacks: tuple[WeightedStack, ...] = ()
    """Those of these stalls."""

    @property
    def is_news(self) -> bool:
        """Whether it is reported; what is not news is kept for comparison."""
        return True

    @property
    def felt_ns(self) -> int:
        """The longest single wait."""
        return self.duration_ns

    @property
    def searched(self) -> tuple[str, ...]:
        """Texts of its own by which it is found."""
        return ()

    @property
    def holder(self) -> Holder | None:
        """Who held what the thread waited for; None: the kind knows of none."""
        return None

    @property
    def blamed_holder(self) -> Holder | None:
        """The holder, where its code is the bug."""
        return None

    @property
    def blamed(self) -> Culprit | None:
        """The line to change."""
        return self.culprit

    @property
    def confidence(self) -> float:
        """How sure the cause is, from 0 to 1."""
        return 1.0

    @property
    def state(self) -> StallState:
        """Ended, unless the kind says otherwise."""
        return StallState.ENDED

    @property
    def severity(self) -> Severity:
        """The lowest, unless the kind says otherwise."""
        return Severity.STALL


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedFacts(IssueFacts):
    """As IssueFacts. The desk (tracers.desk) fills in what is empty: the process and the id always, the
    others where the tracer leaves them."""

    id: str = field(default="", metadata=NEEDED)
    session: str = field(default="", metadata=NEEDED)
    pid: int = field(default=0, metadata=NEEDED)
    fingerprint: str = field(default="", metadata=NEEDED)
    """Of the tracer: any text that is the same for the same bug."""
    title: str = field(default="", metadata=NEEDED)
    thread: str = field(default="", metadata=NEEDED)
    """Empty: the thread that reports it."""
    loop: str = field(default="", metadata=NEEDED)
    scene: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownIssue(IssueFacts):
    """What all kinds have in common, and the record as it came: it is kept for when the plugin is there."""

    record: dict[str, Any]
    """As JSON."""

    @property
    def kind(self) -> IssueKind:  # type: ignore[override]
        """As the record names it."""
        return IssueKind(self.record["kind"])
