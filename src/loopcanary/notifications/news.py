"""Which stalls are news: each once, when it is over or a hang that goes on; once more as it becomes an ANR,
and where it ends with the process. Pure.
"""

from __future__ import annotations

from enum import Enum

from loopcanary.model import Severity, Stall, StallState
from loopcanary.model.stall import HANG_NS

_REMEMBERED = 10_000


class Stage(Enum):
    """How far a stall has come; each is told of by itself."""

    STALL = "stall"
    ANR = "anr"
    KILLED = "killed"


_ORDER = tuple(Stage)


def stage_of(stall: Stall) -> Stage:
    """The stage that it is at."""
    if stall.state is StallState.KILLED:
        return Stage.KILLED
    return Stage.ANR if stall.severity is Severity.ANR else Stage.STALL


def group_of(stall: Stall) -> str:
    """The key by which the limit counts: the bug, and its stage. A line that stalls now and then for a second
    does not hide that it has begun to hang for good."""
    return f"{stall.fingerprint} {stage_of(stall).value}"


class News:
    """Stalls in, those that are news out. Not thread-safe."""

    def __init__(self, from_ns: int) -> None:
        """`from_ns`: shorter stalls are no news, but for those that ended with their process."""
        self._from_ns = from_ns
        self._taken: dict[str, Stage] = {}

    def is_news(self, stall: Stall) -> bool:
        """Whether it is long enough, and nobody has heard of it at this stage."""
        stage, before = stage_of(stall), self._taken.get(stall.id)
        if stage is Stage.KILLED:
            return before is not Stage.KILLED
        # One that goes on is told of as a hang; shorter ones are over in a moment, and known in full then.
        is_ongoing = stall.state is StallState.ONGOING
        if stall.duration_ns < (max(self._from_ns, HANG_NS) if is_ongoing else self._from_ns):
            return False
        # It was told of while it lasted: that it grew since is worth a word only while it still does.
        return before is None or (is_ongoing and _ORDER.index(stage) > _ORDER.index(before))

    def take(self, stall: Stall) -> None:
        """It was told of, or counted."""
        self._taken.pop(stall.id, None)
        self._taken[stall.id] = stage_of(stall)
        if len(self._taken) > _REMEMBERED:
            del self._taken[next(iter(self._taken))]
