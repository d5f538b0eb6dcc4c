"""Which issues are news: each once, when it is over. A hang while it goes on, once more as it becomes an ANR,
and where it ends with the process. Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from loopcanary.model import Issue, IssueKind, Severity, StallState
from loopcanary.model.stall import HANG_NS

_REMEMBERED = 10_000


class Stage(Enum):
    """How far an issue has come; each step is notified."""

    FIRST = "first"
    ANR = "anr"
    KILLED = "killed"


_ORDER = tuple(Stage)


def stage_of(issue: Issue) -> Stage:
    """The stage that it is at."""
    if issue.state is StallState.KILLED:
        return Stage.KILLED
    return Stage.ANR if issue.severity is Severity.ANR else Stage.FIRST


def group_of(issue: Issue) -> str:
    """The key by which the limit counts: the bug and its stage. So a line that often stalls for a second does
    not hide that it now hangs for good."""
    return f"{issue.fingerprint} {stage_of(issue).value}"


class News:
    """Issues in, those that are news out. Not thread-safe."""

    def __init__(self, from_ns: int, kinds: Collection[IssueKind] = ()) -> None:
        """`from_ns`: shorter waits are no news, except stalls that ended with their process. `kinds`: others
        are no news either."""
        self._from_ns = from_ns
        self._kinds = kinds
        self._taken: dict[str, Stage] = {}

    def is_news(self, issue: Issue) -> bool:
        """Whether it is of a kind that is asked for, long enough, and unheard of at this stage.

        An issue made of a stall that was notified says the same again, and is none.
        """
        if (self._kinds and issue.kind not in self._kinds) or not issue.is_news:
            return False
        if any(one in self._taken for one in issue.stalls):
            return False
        stage, before = stage_of(issue), self._taken.get(issue.id)
        if stage is Stage.KILLED:
            return before is not Stage.KILLED
        # One that goes on is reported as a hang; shorter ones are over in a moment, and known in full then.
        is_ongoing = issue.state is StallState.ONGOING
        if issue.felt_ns < (max(self._from_ns, HANG_NS) if is_ongoing else self._from_ns):
            return False
        # It was reported while it lasted: that it grew since is worth a word only while it still does.
        return before is None or (is_ongoing and _ORDER.index(stage) > _ORDER.index(before))

    def take(self, issue: Issue) -> None:
        """It was notified, or counted."""
        self._taken.pop(issue.id, None)
        self._taken[issue.id] = stage_of(issue)
        if len(self._taken) > _REMEMBERED:
            del self._taken[next(iter(self._taken))]
