"""`loopcanary clean`: deletes stored stalls."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from loopcanary.cli.opening import NOTHING_FOUND, one_store, opened
from loopcanary.cli.times import Duration, Size
from loopcanary.cli.words import Renamed, Word
from loopcanary.model.search import STALLS, IssueQuery
from loopcanary.words.text import count_of

if TYPE_CHECKING:
    from pathlib import Path

    from loopcanary.store import Store


@click.command()
@one_store
@click.option("--older-than", type=Duration(), metavar="DURATION", help="Stalls older than this, such as 7d.")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="All stalls but the newest N.")
@click.option(
    "--max-size", type=Size(), metavar="SIZE", help="The oldest, until the rest takes less, such as 100MB."
)
@click.option(
    "--bug",
    "--fingerprint",
    "fingerprint",
    cls=Renamed,
    metavar="FINGERPRINT",
    type=Word(),
    help="All stalls of this bug.",
)
@click.option("--all", "everything", is_flag=True, help="All stalls and ended runs; asks first.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(
    *,
    store: Path | None,
    older_than: int | None,
    keep: int | None,
    max_size: int | None,
    fingerprint: str | None,
    everything: bool,
    yes: bool,
) -> int:
    """Delete stored stalls, for good."""
    asked = [older_than is not None, keep is not None, max_size is not None, fingerprint is not None]
    if sum([*asked, everything]) != 1:
        raise click.UsageError("say what to delete: one of --older-than, --keep, --max-size, --bug and --all")
    with opened(store, live=False) as source:
        if source is None:
            return NOTHING_FOUND
        if everything and not yes:
            _ask(source)
        before = source.reader.totals(STALLS).issues
        if max_size is not None:
            deleted = source.maintenance.shrink(max_size)
        elif keep is not None:
            deleted = source.maintenance.delete_all_but_newest(keep)
        elif older_than is not None:
            deleted = source.maintenance.delete(IssueQuery(until_wall_ns=time.time_ns() - older_than))
        else:
            deleted = source.maintenance.delete(IssueQuery(fingerprint=fingerprint))
        stalls = min(max(before - source.reader.totals(STALLS).issues, 0), deleted)
        others = deleted - stalls
        issues = f" and {count_of(others, 'other issue')}" if others else ""
        click.echo(f"Deleted {count_of(stalls, 'stall')}{issues}.")
        return NOTHING_FOUND if fingerprint is not None and deleted == 0 else 0


def _ask(source: Store) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("--all asks first, and there is no terminal to ask on: add --yes")
    count = source.reader.totals(STALLS).issues
    click.confirm(f"Delete {count_of(count, 'stall')} in {source.folder}?", abort=True, err=True)
