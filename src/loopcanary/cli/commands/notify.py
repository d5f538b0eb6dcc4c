"""`loopcanary notify`: notifies about new stalls and other issues: desktop, webhook, bell."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from loopcanary.cli.aside import go_aside
from loopcanary.cli.ending import End
from loopcanary.cli.opening import closed_at_end, found_stores, reads_stores
from loopcanary.cli.options import given
from loopcanary.cli.refusals import BAD_USE, NOTHING_FOUND, complain, reader_left, refuse
from loopcanary.cli.settings import loaded
from loopcanary.cli.words import Number, Word

if TYPE_CHECKING:
    from pathlib import Path

    from loopcanary.assembly.notify import NotifyOrder
    from loopcanary.notifications.notice import Notice
    from loopcanary.notifications.outlet import Receiver

_FAILED = 1


@click.command(short_help="Notify about new stalls: desktop, webhook or terminal bell.")
@reads_stores
@click.option("--desktop", is_flag=True, help="Desktop notifications.")
@click.option("--webhook", is_flag=True, help="To the address in LOOPCANARY_WEBHOOK_URL or --webhook-file.")
@click.option("--bell", is_flag=True, help="Ring this terminal.")
@click.option("--webhook-file", metavar="FILE", type=Word(), help="File with the webhook's address.")
@click.option(
    "--from",
    "notify_from",
    metavar="WHAT",
    type=Word(),
    help="From which length on: a duration, stall, hang (1s), anr (5s) or killed. Default: hang.",
)
@click.option(
    "--kinds",
    "notify_kinds",
    metavar="KIND,...",
    type=Word(),
    help="Kinds of issues: stall, jank, input, idle ... Default: all.",
)
@click.option(
    "--every",
    "notify_every",
    metavar="DURATION",
    type=Word(),
    help="Time between notifications of one bug. Default: 1m.",
)
@click.option(
    "--at-most",
    "notify_per_minute",
    metavar="N",
    type=Number(int, 1),
    help="Notifications a minute, of all bugs. Default: 6.",
)
@click.option(
    "--test", "is_test", is_flag=True, help="Send one notification, say whether it arrived, and end."
)
@click.option(
    "--beside", type=int, hidden=True, help="Follow as long as this process, or one of the store's, runs."
)
@click.option("--since", type=int, hidden=True, help="Wall time in ns from which on stalls are news.")
def command(
    *,
    stores: tuple[Path, ...],
    desktop: bool,
    webhook: bool,
    bell: bool,
    is_test: bool,
    beside: int | None,
    since: int | None,
    **settings: Any,
) -> int:
    """Notify about new stalls as they happen, in one store or several; default: .loopcanary in the current
    folder.

    Notifies about hangs while they last, about processes that were killed during a stall, and about jank,
    late input and long idle work when they are over. Defaults come from the settings. Stops on Control-C or
    when its output is closed.
    """
    from loopcanary.assembly.notify import NotifyOrder
    from loopcanary.notifications.receivers import UnusableWayError, receiver_of

    config = loaded(given(settings))
    chosen = {name for name, is_on in (("desktop", desktop), ("webhook", webhook), ("bell", bell)) if is_on}
    ways = chosen or set(config.notify)
    receivers: list[Receiver] = []
    for way in sorted(ways - {"bell"}):
        try:
            receivers.append(receiver_of(way, config))
        except UnusableWayError as error:
            status = refuse(str(error))
            if beside is None:
                return status
            _leave_word(stores, way, str(error))
    if beside is not None and not receivers:
        _give_up(stores)
        return BAD_USE
    if is_test:
        if stores:
            found_stores(stores)
        return _test(receivers, rings="bell" in ways)
    since_wall_ns = time.time_ns() if since is None else since
    wishes = NotifyOrder(config=config, receivers=receivers, beside=beside, since_wall_ns=since_wall_ns)
    if beside is not None:
        go_aside()
    return _follow(stores, wishes, rings="bell" in ways)


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


def _follow(named: tuple[Path, ...], wishes: NotifyOrder, *, rings: bool) -> int:
    from loopcanary.assembly.notify import Follower

    is_for_people = wishes.beside is None

    def show(notice: Notice) -> None:
        if is_for_people:
            try:
                click.echo("\n  ".join([notice.title, *notice.lines]))
            except BrokenPipeError:
                reader_left()
                end.is_asked_for = True
            except OSError:
                pass  # a full disk
        if rings:
            _ring()

    with closed_at_end(found_stores(named)) as stores:
        follower = Follower(stores, wishes, show=show, complain=complain)
        if not follower.claim():
            return 0 if wishes.beside is not None else NOTHING_FOUND
        end = End(reader_of=sys.stdout if is_for_people else None)
        follower.run(end)
    return 0


def _ring() -> None:
    if sys.stderr.isatty():
        click.echo("\a", nl=False, err=True)
