"""From what is new in the stores to what is sent: news, limit, words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, IssueKind, Session, StallState
from loopcanary.notifications.feed import Feed
from loopcanary.notifications.news import News, group_of
from loopcanary.notifications.notice import Notice, notice_of, over_of, rest_of
from loopcanary.notifications.rate_limit import Permit, RateLimit
from loopcanary.registry import issue_kind

_UNFINISHED_MAX = 1_000


@dataclass(frozen=True, slots=True)
class _Heard:
    issue: Issue
    session: Session | None


class Desk:
    """Looks at all stores, and sends what is news. One thread; time is an argument."""

    def __init__(
        self,
        feeds: Sequence[Feed],
        *,
        from_ns: int,
        kinds: Collection[IssueKind] = (),
        every_ns: int,
        per_minute: int,
        tell: Callable[[Notice], object],
        errors: tuple[type[Exception], ...],
        complain: Callable[[str], object],
        details: str,
    ) -> None:
        """`errors`: what a store may raise; `complain` gets each once. `details`: the command that shows
        what was not notified."""
        self._feeds = feeds
        self._news = News(from_ns, kinds)
        self._nouns: set[str] = set()
        """What all that was counted until now is counted as."""
        self._limit: RateLimit[_Heard] = RateLimit(every_ns=every_ns, per_minute=per_minute)
        self._tell = tell
        self._errors = errors
        self._complain = complain
        self._details = details
        self._complaints: set[str] = set()
        self._unfinished: dict[str, None] = {}
        """Ids of stalls that were notified in progress, and whose end was not."""

    @property
    def withheld(self) -> int:
        return self._limit.withheld

    @property
    def is_anything_watched(self) -> bool:
        """Whether a watched process of one of the stores ran at the last look."""
        return any(feed.is_running for feed in self._feeds)

    def look(self, now_ns: int) -> None:
        """Notifies of what is new, and of what has waited long enough."""
        for feed in self._feeds:
            try:
                self._take(feed, now_ns)
            except self._errors as error:
                if str(error) not in self._complaints:
                    self._complaints.add(str(error))
                    self._complain(str(error))
        for permit in self._limit.due(now_ns):
            self._say(permit, now_ns)

    def end(self) -> None:
        """Says how many were not notified."""
        rest = self._limit.rest()
        if rest.count:
            self._tell(rest_of(rest, self._details, self._nouns.pop() if len(self._nouns) == 1 else "issue"))

    def _take(self, feed: Feed, now_ns: int) -> None:
        for issue in feed.take():
            if not self._news.is_news(issue):
                self._finish(issue, feed, now_ns)
                continue
            key = group_of(issue)
            if _goes_on(issue) and not self._limit.would_tell(now_ns, key):
                continue  # it is counted when it is over, with its whole length
            self._news.take(issue)
            self._nouns.add(issue_kind(issue.kind.value).noun)
            permit = self._limit.offer(now_ns, key, issue.felt_ns, _Heard(issue, feed.session_of(issue)))
            if permit is not None:
                self._say(permit, now_ns)

    def _finish(self, issue: Issue, feed: Feed, now_ns: int) -> None:
        """Says that a hang which was notified is over."""
        if issue.id not in self._unfinished or issue.state is not StallState.ENDED:
            return
        del self._unfinished[issue.id]
        if self._limit.admits(now_ns, f"{issue.fingerprint} over"):
            self._tell(over_of(issue, feed.session_of(issue)))

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
