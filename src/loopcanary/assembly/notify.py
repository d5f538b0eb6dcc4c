"""The follower of stores: what is new in them goes to the receivers (`loopcanary notify`)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from loopcanary.assembly.store import recover
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Config, IssueKind
from loopcanary.notifications.desk import Desk
from loopcanary.notifications.feed import Feed, Live
from loopcanary.notifications.notice import Notice
from loopcanary.notifications.outlet import Receiver
from loopcanary.notifications.senders import Senders
from loopcanary.store import Store, StoreError
from loopcanary.words.commands import reading

_LOOK_EVERY_S = 1.0
_CLOSE_S = 30.0
"""At the end, for what is still to be delivered."""


class FollowerEnd(Protocol):
    """The end of the following."""

    is_asked_for: bool

    def wait(self, seconds: float) -> None:
        """Returns at the end, or after this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyOrder:
    """What is to be notified, and by which ways."""

    config: Config
    receivers: list[Receiver]
    beside: int | None
    """The process that started the follower; None: a person did."""
    since_wall_ns: int
    """Stalls are news from here on."""


class Follower:
    """Stores in, notices out, from the claim on what is sent to its being given back."""

    def __init__(
        self,
        stores: list[Store],
        wishes: NotifyOrder,
        *,
        show: Callable[[Notice], None],
        complain: Callable[[str], object],
    ) -> None:
        """`show`: a line for the person who started this; `complain`: a line of what is wrong. Neither
        raises."""
        self._stores = stores
        self._wishes = wishes
        self._show = show
        self._complain = complain
        self._senders = Senders([store.folder for store in stores], complain)

    def claim(self) -> bool:
        """Takes the ways that no other process uses; False if none of those asked for is left."""
        return self._senders.claim(self._wishes.receivers)

    def run(self, end: FollowerEnd) -> None:
        """Until the end is asked for, or nothing runs any more."""
        feeds = [Feed(store, _looking(store), self._wishes.since_wall_ns) for store in self._stores]
        desk = make_desk(
            self._wishes.config,
            feeds,
            tell=self._tell,
            complain=self._complain,
            details=reading("report", [store.folder for store in self._stores]),
        )
        while True:
            self._until_nothing_runs(desk, end)
            desk.end()
            if end.is_asked_for:
                break
            # A program that starts now has found our claims, and starts no follower: it is seen here. Or it
            # finds none, starts one, and may be seen here too: then that one has the claims.
            self._senders.give_back()
            desk.look(time.monotonic_ns())
            if not desk.is_anything_watched or not self._senders.take_again():
                break
        self._senders.close(_CLOSE_S)

    def _until_nothing_runs(self, desk: Desk, end: FollowerEnd) -> None:
        beside = self._wishes.beside
        while True:
            gone = beside is not None and not _runs(beside)
            desk.look(time.monotonic_ns())
            self._senders.write_status(desk.withheld)
            # Looked at after the end was seen: nothing comes any more that this look has not found.
            if end.is_asked_for or (gone and not desk.is_anything_watched):
                return
            end.wait(_LOOK_EVERY_S)

    def _tell(self, notice: Notice) -> None:
        self._show(notice)
        self._senders.send(notice)


def make_desk(
    config: Config,
    feeds: Sequence[Feed],
    *,
    tell: Callable[[Notice], object],
    complain: Callable[[str], object],
    details: str,
) -> Desk:
    """A desk with the limits of these settings."""
    return Desk(
        feeds,
        from_ns=config.notify_from_ns,
        kinds=frozenset(map(IssueKind, config.notify_kinds)),
        every_ns=config.notify_every_ns,
        per_minute=config.notify_per_minute,
        tell=tell,
        errors=(StoreError, OSError),
        complain=complain,
        details=details,
    )


def _looking(store: Store) -> Callable[[], Live]:
    """A function that takes in what dead processes left, and says what runs beside the store."""

    def look() -> Live:
        store.open()
        try:
            found = recover(store)
        except StoreError:
            return Live()  # another user's store can be read all the same
        finally:
            store.notices.clear()  # `report` and `ui` show them
        return Live(running=tuple(found.running), ongoing=tuple(found.ongoing))

    return look


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:1] == [b"Z"]
    except OSError:
        return False
