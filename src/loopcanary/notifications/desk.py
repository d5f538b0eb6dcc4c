"""From what is new in the stores to what is told: news, limit, words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loopcanary.model import Session, Stall, StallState
from loopcanary.notifications.feed import Feed
from loopcanary.notifications.news import News, group_of
from loopcanary.notifications.notice import Notice, notice_of, over_of, rest_of
from loopcanary.notifications.rate_limit import Permit, RateLimit

_UNFINISHED_MAX = 1_000


@dataclass(frozen=True, slots=True)
class _Heard:
    stall: Stall
    session: Session | None


class Desk:
    """Looks at all stores, and tells what is to be told. One thread; time is an argument."""

    def __init__(
        self,
        feeds: Sequence[Feed],
        *,
        from_ns: int,
        every_ns: int,
        per_minute: int,
        tell: Callable[[Notice], object],
        errors: tuple[type[Exception], ...],
        complain: Callable[[str], object],
    ) -> None:
        """`errors`: what a store may raise; `complain` hears of each once."""
        self._feeds = feeds
        self._news = News(from_ns)
        self._limit: RateLimit[_Heard] = RateLimit(every_ns=every_ns, per_minute=per_minute)
        self._tell = tell
        self._errors = errors
        self._complain = complain
        self._complaints: set[str] = set()
        self._unfinished: dict[str, None] = {}
        """Ids of stalls that were told of while they went on, and of whose end nobody was told."""

    @property
    def withheld(self) -> int:
        """Stalls that nobody was told of yet."""
        return self._limit.withheld

    @property
    def is_anything_watched(self) -> bool:
        """Whether a watched process of one of the stores ran at the last look."""
        return any(feed.is_running for feed in self._feeds)

    def look(self, now_ns: int) -> None:
        """Tells what is new, and what has waited long enough."""
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
        """Tells how much nobody was told of."""
        rest = self._limit.rest()
        if rest.count:
            self._tell(rest_of(rest))

    def _take(self, feed: Feed, now_ns: int) -> None:
        for stall in feed.take():
            if not self._news.is_news(stall):
                self._finish(stall, feed, now_ns)
                continue
            key = group_of(stall)
            if stall.state is StallState.ONGOING and not self._limit.would_tell(now_ns, key):
                continue  # it is counted when it is over, with its whole length
            self._news.take(stall)
            permit = self._limit.offer(now_ns, key, stall.duration_ns, _Heard(stall, feed.session_of(stall)))
            if permit is not None:
                self._say(permit, now_ns)

    def _finish(self, stall: Stall, feed: Feed, now_ns: int) -> None:
        """Who was told that it hangs may want to know that it does not any more."""
        if stall.state is not StallState.ENDED or stall.id not in self._unfinished:
            return
        del self._unfinished[stall.id]
        if self._limit.admits(now_ns, f"{stall.fingerprint} over"):
            self._tell(over_of(stall, feed.session_of(stall)))

    def _say(self, permit: Permit[_Heard], now_ns: int) -> None:
        heard = permit.item
        if heard.stall.state is StallState.ONGOING:
            self._unfinished[heard.stall.id] = None
        for oldest in list(self._unfinished)[:-_UNFINISHED_MAX]:
            del self._unfinished[oldest]
        plain = Permit(item=heard.stall, withheld=permit.withheld, is_counted=permit.is_counted)
        self._tell(notice_of(plain, heard.session, now_ns))
