"""From the issues that a process stores to the notices that it sends: news, limit, words."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, IssueKind, Session, Severity, StallState
from loopcanary.model.stall import HANG_NS
from loopcanary.notifications.notice import Notice, notice_of, over_of, rest_of
from loopcanary.notifications.rate_limit import Permit, RateLimit
from loopcanary.protocols.kinds import kind_of

_UNFINISHED_MAX = 1_000
_IGNORED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class _Heard:
    issue: Issue
    session: Session


class Desk:
    """Sends what is news. One thread; time is an argument."""

    def __init__(
        self,
        *,
        from_ns: int,
        kinds: Collection[IssueKind] = (),
        every_ns: int,
        per_minute: int,
        ignored: Callable[[], Collection[str]],
        tell: Callable[[Notice], object],
        details: str,
    ) -> None:
        """`ignored`: gives the fingerprints of bugs that people ignore; `details`: the command that shows
        what was not notified."""
        self._news = News(from_ns, kinds)
        self._nouns: set[str] = set()
        """The nouns of all issues that were counted until now."""
        self._limit: RateLimit[_Heard] = RateLimit(every_ns=every_ns, per_minute=per_minute)
        self._ignored_bugs = ignored
        self._ignored: dict[str, None] = {}
        """Ids of issues of ignored bugs."""
        self._tell = tell
        self._details = details
        self._unfinished: dict[str, None] = {}
        """Ids of stalls that were notified in progress, and whose end was not."""

    @property
    def withheld(self) -> int:
        return self._limit.withheld

    def hear(self, issue: Issue, session: Session, now_ns: int) -> None:
        """Notifies of an issue that is new or in a new state, if that is news. Stalls come before the issues
        that are made of them."""
        if not self._news.is_news(issue):
            self._finish(issue, session, now_ns)
            return
        of_ignored = bool(issue.stalls) and all(one in self._ignored for one in issue.stalls)
        if of_ignored or issue.fingerprint in self._ignored_bugs():
            self._ignored[issue.id] = None
            for oldest in list(self._ignored)[:-_IGNORED_MAX]:
                del self._ignored[oldest]
            return
        key = group_of(issue)
        if _goes_on(issue) and not self._limit.would_tell(now_ns, key):
            return  # it is counted when it is over, with its whole length
        self._news.take(issue)
        self._nouns.add(kind_of(issue).noun)
        permit = self._limit.offer(now_ns, key, issue.felt_ns, _Heard(issue, session))
        if permit is not None:
            self._say(permit, now_ns)

    def look(self, now_ns: int) -> None:
        """Notifies of what has waited long enough."""
        for permit in self._limit.due(now_ns):
            self._say(permit, now_ns)

    def end(self) -> None:
        """Says how many were not notified."""
        rest = self._limit.rest()
        if rest.count:
            self._tell(rest_of(rest, self._details, self._nouns.pop() if len(self._nouns) == 1 else "issue"))

    def _finish(self, issue: Issue, session: Session, now_ns: int) -> None:
        """Says that a hang which was notified is over."""
        if issue.id not in self._unfinished or issue.state is not StallState.ENDED:
            return
        del self._unfinished[issue.id]
        if self._limit.admits(now_ns, f"{issue.fingerprint} over"):
            self._tell(over_of(issue, session))

    def _say(self, permit: Permit[_Heard], now_ns: int) -> None:
        heard = permit.item
        if _goes_on(heard.issue):
            self._unfinished[heard.issue.id] = None
        for oldest in list(self._unfinished)[:-_UNFINISHED_MAX]:
            del self._unfinished[oldest]
        plain = Permit(item=heard.issue, withheld=permit.withheld, is_counted=permit.is_counted)
        self._tell(notice_of(plain, heard.session, now_ns))


def _goes_on(issue: Issue) -> bool:
    return issue.state is StallState.ONGOING


_REMEMBERED = 10_000


class Stage(Enum):
    """How far an issue has come; each step is notified."""

    FIRST = "first"
    ANR = "anr"
    KILLED = "killed"


_ORDER = tuple(Stage)


def stage_of(issue: Issue) -> Stage:
    if issue.state.is_of_process:
        return Stage.KILLED
    return Stage.ANR if issue.severity is Severity.ANR else Stage.FIRST


def group_of(issue: Issue) -> str:
    """The key by which the limit counts: the bug and its stage. So a line that often stalls for a second does
    not hide that it now hangs for good."""
    return f"{issue.fingerprint} {stage_of(issue).value}"


class News:
    """Issues in, those that are news out. Not thread-safe."""

    def __init__(self, from_ns: int, kinds: Collection[IssueKind] = ()) -> None:
        """`from_ns`: shorter waits are not news, except stalls that ended with their process. `kinds`: others
        are not news either."""
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
        """Notes that the issue was notified, or counted."""
        self._taken.pop(issue.id, None)
        self._taken[issue.id] = stage_of(issue)
        if len(self._taken) > _REMEMBERED:
            del self._taken[next(iter(self._taken))]
