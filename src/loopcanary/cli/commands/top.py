"""`loopcanary top`: what all watched processes do now."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from typing import TYPE_CHECKING

import click

from loopcanary.cli.opening import found_stores, reads_stores
from loopcanary.cli.param_types import WORD, number
from loopcanary.cli.refusals import NOTHING_FOUND, refuse

if TYPE_CHECKING:
    from pathlib import Path

    from loopcanary.top.choosing import RowChoice
    from loopcanary.top.rows import RowReader

_ORDERS = ("trouble", "busy", "delay", "callbacks", "stalls", "latest", "program", "pid")
_NO_TEXTUAL = (
    "the live screen needs Textual: pip install 'loopcanary[top]'; `loopcanary top --once` does without"
)


@click.command(short_help="Show what all watched processes do now, live.")
@click.option("--once", is_flag=True, help="Print once and exit, for scripts.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default=None,
    help="Output format of --once. Default: text.",
)
@click.option(
    "--interval",
    type=number(float, 0.1, 3600),
    default=1.0,
    metavar="SECONDS",
    help="Seconds between updates. Default: 1.",
)
@click.option(
    "--sort", type=click.Choice(_ORDERS), default="trouble", help="Order of the lines. Default: trouble."
)
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@click.option("--filter", "words", type=WORD, metavar="TEXT", help="Only lines with these words.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also loops that are gone, and processes that ended a while ago.",
)
@click.option(
    "--theme",
    type=click.Choice(["auto", "dark", "light"]),
    default="auto",
    help="Colours of the screen. Default: auto (COLORFGBG, else dark).",
)
@reads_stores
def command(
    *,
    once: bool,
    form: str | None,
    interval: float,
    sort: str,
    reverse: bool,
    words: str | None,
    everything: bool,
    theme: str,
    stores: tuple[Path, ...],
) -> int:
    """Show what all your watched processes do now, live.

    Reads their flight files and sends them no requests, so processes that hang are shown, too. A killed one
    is shown until `loopcanary report` stores its stalls. STORE: where flight files are if there is no
    /dev/shm.
    """
    from loopcanary.top.choosing import RowChoice

    if form is not None and not once:
        return refuse("--format is for --once")
    if not once and (problem := _no_screen()) is not None:
        return refuse(problem)
    from loopcanary.assembly.top import Survey, health_of
    from loopcanary.top.rows import RowReader

    choice = RowChoice(order=sort, reverse=reverse, words=words or "", everything=everything)
    with Survey.of_stores(_folders(stores)) as survey:
        watch = RowReader(survey.read, health_of)
        if once:
            return _print(watch, choice, form or "text", interval)
        from loopcanary.cli.top_pages import LivePages
        from loopcanary.top.app import Top

        Top(watch.look, choice, LivePages(), interval_s=interval, is_dark=_is_dark(theme)).run()
    return 0


def _no_screen() -> str | None:
    """Why there can be no live screen."""
    if importlib.util.find_spec("textual") is None:
        return _NO_TEXTUAL
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "the live screen needs a terminal; `loopcanary top --once` does without"
    return None


def _folders(stores: tuple[Path, ...]) -> list[Path]:
    """The stores that may have flight files of their own, where there is no shared memory. Raises what
    `found_stores` does if some are named."""
    from loopcanary.config import ConfigError
    from loopcanary.store import StoreError

    try:
        return [store.folder for store in found_stores(stores)]
    except (click.ClickException, StoreError, ConfigError):
        if stores:
            raise
        return []  # what runs needs none


def _print(watch: RowReader, choice: RowChoice, form: str, interval_s: float) -> int:
    """Reads twice, because rates need two readings."""
    from loopcanary.top import printing
    from loopcanary.top.choosing import chosen

    if watch.look():
        time.sleep(interval_s)
    rows = watch.look()
    found = chosen(rows, choice)
    if form == "json":
        click.echo(printing.render(found, time.time_ns()), nl=False)
    else:
        for line in printing.lines(found, len(rows) - len(found), _width()):
            click.echo(line)
    return NOTHING_FOUND if choice.words and not found else 0


def _width() -> int | None:
    """The terminal's width; None where the output goes elsewhere."""
    from loopcanary.cli.screen import Screen

    return Screen().width if sys.stdout.isatty() else None


def _is_dark(theme: str) -> bool:
    """COLORFGBG is `foreground;background` in the terminal's numbers: 7 and 9 to 15 are light."""
    if theme != "auto":
        return theme == "dark"
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return not (background.isdigit() and (int(background) == 7 or 9 <= int(background) <= 15))
