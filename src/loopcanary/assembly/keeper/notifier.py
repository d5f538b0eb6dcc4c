"""Notifications as an outlet of the keeper: what is new in its store goes to the ways that its programs'
settings name. As `loopcanary notify` does, but the keeper says which programs run, and when there may
be news."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from loopcanary.assembly.notify import make_desk
from loopcanary.notifications import standing
from loopcanary.notifications.feed import Feed, Live
from loopcanary.notifications.receivers import UnusableWayError, receiver_of
from loopcanary.notifications.senders import Senders
from loopcanary.words.commands import reading

if TYPE_CHECKING:
    from loopcanary.model import Config, Session
    from loopcanary.notifications.desk import Desk
    from loopcanary.notifications.outlet import Receiver
    from loopcanary.store import Store

_S = 1_000_000_000
_LOOK_EVERY_NS = _S
"""While something waits for its time, or goes on."""
_BEFORE_NS = 60 * _S
"""What a keeper before stored so short a time before it last sent, or was killed, it may not have sent."""
_CLOSE_S = 0.5


class Notifier:
    """Of one store, by the settings of the first program that asks. The keeper's thread; raises nothing."""

    def __init__(self, store: Store, live: Callable[[], Live], complain: Callable[[str], object]) -> None:
        """`live`: what runs and goes on now, as far as this keeper serves it."""
        self._store = store
        self._live = live
        self._complain = complain
        self._senders = Senders([store.folder], complain)
        self._desk: Desk | None = None
        self._was_asked = False

    def wish(self, config: Config, session: Session, tell: Callable[[str], object]) -> None:
        """A program has begun to be served, whose settings these are. `tell`: says it a line."""
        ways = sorted(set(config.notify) - {"bell"})
        if not ways or self._was_asked:
            return
        self._was_asked = True
        receivers: list[Receiver] = []
        for way in ways:
            try:
                receivers.append(receiver_of(way, config))
            except UnusableWayError as error:
                tell(f"loopcanary: {error}\n")
        since_wall_ns = max([session.started_wall_ns, *map(self._last_sent_wall_ns, ways)])
        if receivers and not self._senders.claim(receivers):
            self._was_asked = False  # `loopcanary notify` is at work: the next program may find it gone
        elif receivers:
            self._desk = make_desk(
                config,
                [Feed(self._store, self._live, since_wall_ns)],
                tell=self._senders.send,
                complain=self._complain,
                details=reading("report", [self._store.folder]),
            )

    def look(self, now_ns: int) -> int | None:
        """Sends what is new. When to look again; None: when something has happened."""
        if self._desk is None:
            return None
        self._desk.look(now_ns)
        self._senders.write_status(self._desk.withheld)
        waits = self._desk.withheld or self._live().ongoing
        return now_ns + _LOOK_EVERY_NS if waits else None

    def end(self) -> None:
        """Delivers what is left; the ways are free again."""
        if self._desk is not None:
            self._desk.look(time.monotonic_ns())
            self._desk.end()
            self._senders.close(_CLOSE_S)
            self._senders.give_back()
            self._desk = None
        self._was_asked = False

    def _last_sent_wall_ns(self, way: str) -> int:
        """When a process before last had to do with this way, and some time before."""
        try:
            return standing.status_path(self._store.folder, way).stat().st_mtime_ns - _BEFORE_NS
        except OSError:
            return 0
