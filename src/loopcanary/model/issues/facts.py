"""What issues of every kind but stalls have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.spelling import spelled
from loopcanary.model.stall import Cause, Culprit, StallState, WeightedStack


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueFacts:
    """Who, when, how long, and what was behind it."""

    id: str
    kind: ClassVar[IssueKind]
    fingerprint: str
    session: str
    pid: int
    thread: str
    loop: str
    title: str
    scene: str | None
    began_wall_ns: int
    """When the first frame began, the event arrived, the work or the program began."""
    duration_ns: int
    """To the end of the last frame, pauses included; of the handling; of the work; of the start."""
    cause: Cause = Cause.UNKNOWN
    culprit: Culprit | None = None
    advice: str | None = None
    stalls: tuple[str, ...] = field(default=(), metadata=spelled(name="stall_ids"))
    """Ids of the stalls in it."""
    stacks: tuple[WeightedStack, ...] = ()

    @property
    def state(self) -> StallState:
        """Always ended: only stalls are stored while they last."""
        return StallState.ENDED
