"""`loopcanary keep`: takes in at once what killed programs leave."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from loopcanary.cli.opening import closed_at_end, found_stores, reads_stores
from loopcanary.cli.options import given
from loopcanary.cli.param_types import WORD
from loopcanary.cli.refusals import NOTHING_FOUND, complain, reader_left, refuse
from loopcanary.cli.settings import loaded
from loopcanary.model import Config
from loopcanary.words.text import count_of, printable

_LATEST_S = 1 << 32


@click.command(short_help="Store at once the stalls that killed programs leave.")
@click.option("--status", "is_status", is_flag=True, help="Show the running keepers, and exit.")
@click.option(
    "--notify",
    metavar="WAY",
    type=WORD,
    multiple=True,
    help="Notify about hangs of all programs by desktop or webhook; may be repeated.",
)
@reads_stores
def command(*, stores: tuple[Path, ...], is_status: bool, notify: tuple[str, ...]) -> int:
    """Store at once the stalls that killed programs leave, in one store or several; default: .loopcanary in
    the current folder.

    Makes the folders that are missing. Runs until Ctrl-C or SIGTERM; one keeper serves a store. For
    containers and services: docs/how-to/keeper.md.
    """
    if not sys.platform.startswith("linux"):
        return refuse(
            "`keep` needs Linux; elsewhere the next run or report stores what killed programs leave"
        )
    if is_status:
        return _show_status([store.folder for store in found_stores(stores)])
    config = loaded(given({"notify": notify})) if notify else None
    if config is not None and (problem := _unusable(config)):
        return refuse(problem)
    from loopcanary.assembly.keeper.making import make_keeper

    found = found_stores(stores, make=True, writes=True)
    with closed_at_end(found):
        keeper = make_keeper(found, is_apart=False, show=_show, complain=complain, notify=config)
        try:
            keeper.run()
        finally:
            keeper.end()
    return 0


def _unusable(config: Config) -> str | None:
    """Why one of the ways to notify cannot be used here."""
    from loopcanary.notifications.notifier import UnusableWayError, receiver_of

    if "bell" in config.notify:
        return "bell rings a terminal, which a keeper does not have: use desktop or webhook"
    try:
        for way in config.notify:
            receiver_of(way, config)
    except UnusableWayError as error:
        return str(error)
    return None


def _show(line: str) -> None:
    try:
        click.echo(line)
    except BrokenPipeError:
        reader_left()
    except OSError:
        pass  # a full disk


def _show_status(folders: list[Path]) -> int:
    from loopcanary.keeper.seat import statuses

    shown = 0
    for folder in folders:
        for status in statuses(str(folder)):
            shown += 1
            click.echo(f"{folder}: {_words(status)}")
    if not shown:
        click.echo("no keeper is running")
    return 0 if shown else NOTHING_FOUND


def _words(status: dict[str, Any]) -> str:
    """A keeper's status, which anybody who may write to the folder may have written."""

    def number(key: str) -> int:
        value = status.get(key)
        return value if isinstance(value, int) else 0

    since = time.strftime(
        "%Y-%m-%d %H:%M:%S", time.localtime(min(number("since_wall_ns") // 10**9, _LATEST_S))
    )
    watched = status.get("watched")
    pids = [one for one in watched if isinstance(one, int)] if isinstance(watched, list) else []
    named = f" ({', '.join(map(str, pids))})" if pids else ""
    who = f"pid {number('pid')}, loopcanary {printable(str(status.get('version')), 40)}"
    return (
        f"{who} of {printable(str(status.get('prefix')), 200)}, since {since}; "
        f"watches {count_of(len(pids) + number('elsewhere'), 'program')}{named}; "
        f"has stored {count_of(number('stalls'), 'stall')} of {count_of(number('processes'), 'program')}"
    )
