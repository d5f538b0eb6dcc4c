"""`loopcanary notify`: tells of new stalls, on the desktop, by webhook, with a bell."""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loopcanary.cli import BAD_USE, refuse
from loopcanary.cli.ending import End
from loopcanary.cli.opening import NOTHING_FOUND
from loopcanary.cli.words import Folder, Word

if TYPE_CHECKING:
    from loopcanary.model import Config
    from loopcanary.notifications.desk import Desk
    from loopcanary.notifications.feed import Live
    from loopcanary.notifications.notice import Notice
    from loopcanary.notifications.outlet import Outlet, Receiver
    from loopcanary.notifications.standing import Claim
    from loopcanary.store import Store

_LOOK_EVERY_S = 1.0
_CLOSE_S = 30.0
"""At the end, for what is still to be delivered."""
_FAILED = 1


def _stores(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[Path, ...]:
    """Folders; an address among them is a secret, which is not repeated."""
    if any("://" in word for word in value):
        raise click.UsageError(
            "a webhook's address is a secret, and every user of the machine can read a command line: put it "
            "into LOOPCANARY_WEBHOOK_URL, or into a file and its path into --webhook-file"
        )
    return tuple(Folder().convert(word, param, ctx) for word in value)


@click.command(short_help="Tell of new stalls, on the desktop, by webhook, with a bell.")
@click.argument("stores", metavar="[STORE ...]", nargs=-1, callback=_stores)
@click.option(
    "--store", "more", multiple=True, type=Folder(), metavar="DIR", help="Another way to name a store."
)
@click.option("--desktop", is_flag=True, help="Desktop notifications.")
@click.option("--webhook", is_flag=True, help="To the address in LOOPCANARY_WEBHOOK_URL or --webhook-file.")
@click.option("--bell", is_flag=True, help="Ring this terminal.")
@click.option("--webhook-file", metavar="FILE", type=Word(), help="File with the webhook's address.")
@click.option(
    "--from",
    "notify_from",
    metavar="WHAT",
    type=Word(),
    help="The least: a duration, or stall, hang, anr, killed. Default: hang, 1s.",
)
@click.option(
    "--every",
    "notify_every",
    metavar="DURATION",
    type=Word(),
    help="Of one bug at most once in. Default: 1m.",
)
@click.option(
    "--at-most",
    "notify_per_minute",
    metavar="N",
    type=click.IntRange(min=1),
    help="Notifications a minute, of all bugs. Default: 6.",
)
@click.option("--test", "is_test", is_flag=True, help="Send one, say whether it arrived, and end.")
@click.option(
    "--beside", type=int, hidden=True, help="Follow as long as this process, or one of the store's, runs."
)
@click.option("--since", type=int, hidden=True, help="Wall time in ns from which on stalls are news.")
def command(
    *,
    stores: tuple[Path, ...],
    more: tuple[Path, ...],
    desktop: bool,
    webhook: bool,
    bell: bool,
    is_test: bool,
    beside: int | None,
    since: int | None,
    **settings: Any,
) -> int:
    """Tell of new stalls as they happen, of one store or several; default: .loopcanary in the current folder.

    Hangs are told of while they last, and processes that were killed while they stalled. What is not given
    here comes from the settings. Ends with Control-C.
    """
    from loopcanary.config import load

    given = {key: value for key, value in settings.items() if value is not None}
    config = load(**given)
    chosen = {name for name, is_on in (("desktop", desktop), ("webhook", webhook), ("bell", bell)) if is_on}
    ways = chosen or set(config.notify)
    receivers: list[Receiver] = []
    for way in sorted(ways - {"bell"}):
        try:
            receivers.append(_receiver(way, config))
        except _UnusableError as error:
            status = refuse(str(error))
            if beside is None:
                return status
            _leave_word(more, way, str(error))
    if beside is not None and not receivers:
        _give_up(more)
        return BAD_USE
    if is_test:
        return _test(receivers, rings="bell" in ways)
    wishes = _Wishes(config, receivers, "bell" in ways, beside, time.time_ns() if since is None else since)
    if beside is not None:
        _go_aside()
    return _follow([*stores, *more] or [None], wishes)


class _UnusableError(Exception):
    """A way that was asked for cannot be gone."""


@dataclass(frozen=True, slots=True)
class _Wishes:
    config: Config
    receivers: list[Receiver]
    rings: bool
    beside: int | None
    since_wall_ns: int


def _receiver(way: str, config: Config) -> Receiver:
    if way == "desktop":
        from loopcanary.notifications.desktop import Desktop
        from loopcanary.notifications.desktop_session import obstacle

        problem = obstacle()
        if problem is not None:
            raise _UnusableError(problem)
        return Desktop()
    from loopcanary.notifications.address import AddressError, read
    from loopcanary.notifications.webhook import Webhook

    try:
        return Webhook(read(os.environ, config.webhook_file)[0])
    except AddressError as error:
        raise _UnusableError(f"webhook: {error}") from None


def _leave_word(stores: tuple[Path, ...], way: str, problem: str) -> None:
    """For `loopcanary doctor`: nobody reads what a process says that a program started."""
    from loopcanary.notifications import standing

    for store in stores:
        if not standing.is_taken(store, way):
            standing.write_status(store, way, {"pid": os.getpid(), "sent": 0, "problem": problem})


def _give_up(stores: tuple[Path, ...]) -> None:
    """Another process of the program may try at once: it may be better off."""
    from loopcanary.notifications import standing

    for store in stores:
        standing.started(store)


def _test(receivers: list[Receiver], *, rings: bool) -> int:
    from loopcanary.notifications.notice import Notice
    from loopcanary.notifications.outlet import DeliveryError

    notice = Notice(title="loopcanary: a test", cause="Notifications of stalls look like this.")
    failed = False
    if rings:
        _ring()
    for receiver in receivers:
        try:
            receiver.deliver(notice)
            click.echo(f"{receiver.name}: sent")
        except DeliveryError as error:
            failed = True
            click.echo(f"{receiver.name}: {error}")
        finally:
            receiver.close()
    if not receivers and not rings:
        return refuse("nothing to test: name --desktop, --webhook or --bell")
    return _FAILED if failed else 0


# ---- following --------------------------------------------------------------------------------


def _follow(folders: list[Path | None], wishes: _Wishes) -> int:
    with ExitStack() as stack:
        opened = [_opened(folder, wishes.config, stack) for folder in folders]
        stores = [store for store in opened if store is not None]
        if len(stores) < len(opened):
            return NOTHING_FOUND
        follower = _Follower(stores, wishes)
        if not follower.claim():
            return 0 if wishes.beside is not None else NOTHING_FOUND
        follower.run(End())
    return 0


def _opened(given: Path | None, config: Config, stack: ExitStack) -> Store | None:
    from loopcanary import assembly
    from loopcanary.store import find

    folder = find(given or config.store).folder
    if not folder.is_dir():
        refuse(f"there is no store in {folder}: `loopcanary run PROGRAM` makes one, --store names another")
        return None
    store = assembly.open_store(folder, config)
    stack.callback(store.close)
    return store


class _Follower:
    """Stores in, notices out, from the claim on what is sent to its being given back."""

    def __init__(self, stores: list[Store], wishes: _Wishes) -> None:
        self._stores = stores
        self._wishes = wishes
        self._claims: list[Claim] = []
        self._outlets: list[Outlet] = []
        self._written: dict[str, dict[str, Any]] = {}

    def claim(self) -> bool:
        """Takes those ways that nobody else goes; False where that leaves none of those asked for."""
        from loopcanary.notifications import standing

        free: list[Receiver] = []
        for receiver in self._wishes.receivers:
            claims = [standing.Claim(store.folder, receiver.name) for store in self._stores]
            if standing.take_all(claims):
                free.append(receiver)
                self._claims += claims
                continue
            refuse(f"{receiver.name} notifications are sent by another process already")
        for store in self._stores:
            standing.started(store.folder)
        if self._wishes.receivers and not free:
            return False
        from loopcanary.notifications.outlet import Outlet

        self._outlets = [Outlet(receiver) for receiver in free]
        return True

    def run(self, end: End) -> None:
        """Until the end is asked for, or nothing runs any more."""
        from loopcanary.notifications.desk import Desk
        from loopcanary.notifications.feed import Feed
        from loopcanary.store import StoreError

        wishes = self._wishes
        desk = Desk(
            [Feed(store, _looking(store), wishes.since_wall_ns) for store in self._stores],
            from_ns=wishes.config.notify_from_ns,
            every_ns=wishes.config.notify_every_ns,
            per_minute=wishes.config.notify_per_minute,
            tell=self._tell,
            errors=(StoreError, OSError),
            complain=refuse,
        )
        while True:
            self._until_nothing_runs(desk, end)
            desk.end()
            if end.is_asked_for:
                break
            # A program that starts now has found our claims, and starts no follower: it is seen here. Or it
            # finds none, starts one, and may be seen here too: then that one has the claims.
            self._give_back()
            desk.look(time.monotonic_ns())
            if not desk.is_anything_watched or not self._take_again():
                break
        for outlet in self._outlets:
            outlet.close(_CLOSE_S)
        self._write_status(0)

    def _until_nothing_runs(self, desk: Desk, end: End) -> None:
        beside = self._wishes.beside
        while True:
            gone = beside is not None and not _runs(beside)
            desk.look(time.monotonic_ns())
            self._write_status(desk.withheld)
            # Looked at after the end was seen: nothing comes any more that this look has not found.
            if end.is_asked_for or (gone and not desk.is_anything_watched):
                return
            end.wait(_LOOK_EVERY_S)

    def _give_back(self) -> None:
        for claim in self._claims:
            claim.give_back()

    def _take_again(self) -> bool:
        from loopcanary.notifications import standing

        return standing.take_all(self._claims)

    def _tell(self, notice: Notice) -> None:
        if self._wishes.beside is None:
            with suppress(OSError):
                click.echo("\n  ".join([notice.title, *notice.lines]))
        if self._wishes.rings:
            _ring()
        for outlet in self._outlets:
            outlet.send(notice)

    def _write_status(self, withheld: int) -> None:
        from loopcanary.notifications import standing

        for outlet in self._outlets:
            counts = outlet.counts
            status = {
                "pid": os.getpid(),
                "sent": counts.sent,
                "lost": counts.lost,
                "lost_stalls": counts.lost_stalls,
                "withheld": withheld,
                "problem": counts.problem,
            }
            if self._written.get(outlet.name) == status:
                continue
            self._written[outlet.name] = status
            for store in self._stores:
                standing.write_status(store.folder, outlet.name, status)


def _looking(store: Store) -> Any:
    """A function that takes in what dead processes left, and says what runs beside the store."""
    from loopcanary import assembly
    from loopcanary.notifications.feed import Live
    from loopcanary.store import StoreError

    def look() -> Live:
        store.open()
        try:
            found = assembly.recover(store)
        except StoreError:
            return Live()  # somebody else's store can be read all the same
        finally:
            store.notices.clear()  # `report` and `ui` tell people of them
        return Live(running=tuple(found.running), ongoing=tuple(found.ongoing))

    return look


def _ring() -> None:
    if sys.stderr.isatty():
        click.echo("\a", nl=False, err=True)


def _go_aside() -> None:
    """A program started us: nothing of its terminal, folder and open files is ours."""
    with suppress(OSError):
        os.chdir("/")
    if hasattr(os, "setsid"):
        with suppress(OSError):
            os.setsid()
    with suppress(OSError, ValueError):
        os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 65_536))


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
