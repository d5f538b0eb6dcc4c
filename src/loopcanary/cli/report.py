"""`loopcanary report`: what stalled, bug by bug."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from loopcanary.cli.formats import LIMITS, format_option, write
from loopcanary.cli.opening import NOTHING_FOUND, opened, store_option
from loopcanary.cli.selecting import selection_options
from loopcanary.model.search import StallQuery
from loopcanary.model.stall import Cause

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@store_option
@format_option
@selection_options
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Show at most N of each; 0: all.")
def command(
    *,
    store: Path | None,
    form: str,
    since: int | None,
    until: int | None,
    causes: tuple[str, ...],
    words: tuple[str, ...],
    session: str | None,
    limit: int | None,
) -> int:
    """Show what stalled: bugs by total time, latest stalls, sessions.

    Stalls of processes that were killed, and those that go on now, are in it.
    """
    query = StallQuery(
        since_wall_ns=since,
        until_wall_ns=until,
        causes=frozenset(Cause(cause) for cause in causes),
        words=words,
        session=session,
    )
    with opened(store) as source:
        if source is None:
            return NOTHING_FOUND
        from loopcanary import assembly
        from loopcanary.report.model import build

        report = build(
            source,
            query,
            limit=LIMITS[form] if limit is None else limit,
            now_wall_ns=time.time_ns(),
            with_worst=form != "json",
            delays=assembly.delays,
        )
        if report.finds_nothing and form != "json" and query != StallQuery():
            click.echo("No stall matches.")
        else:
            write(report, form, "report")
        return NOTHING_FOUND if report.finds_nothing and query != StallQuery() else 0
