"""`loopcanary clean`: deletes stored stalls."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from loopcanary.cli.opening import opened, reads_stores
from loopcanary.cli.param_types import DURATION, SIZE, number
from loopcanary.cli.selecting import bug_option, the_bug
from loopcanary.model.search import STALLS, IssueQuery
from loopcanary.words.text import count_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loopcanary.store import Store


@click.command(short_help="Delete stalls and runs that are stored.")
@reads_stores
@click.option("--older-than", type=DURATION, metavar="DURATION", help="Stalls older than this, such as 7d.")
@click.option("--keep", type=number(int, 0), metavar="N", help="All stalls but the newest N.")
@click.option(
    "--max-size",
    type=SIZE,
    metavar="SIZE",
    help="The oldest, until the rest takes less than this, such as 100MB.",
)
@bug_option("All issues of this bug; the first characters of its fingerprint are enough.")
@click.option(
    "--id", "ids", multiple=True, metavar="ID", help="The issue or run with this id; may be repeated."
)
@click.option("--all", "everything", is_flag=True, help="All stalls and ended runs; asks first.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(
    *,
    stores: tuple[Path, ...],
    older_than: int | None,
    keep: int | None,
    max_size: int | None,
    group: str | None,
    ids: tuple[str, ...],
    everything: bool,
    yes: bool,
) -> int:
    """Delete stored issues and runs for good. With several stores, each of them is cleaned."""
    asked = [older_than is not None, keep is not None, max_size is not None, group is not None, bool(ids)]
    if sum([*asked, everything]) != 1:
        raise click.UsageError(
            "say what to delete: one of --older-than, --keep, --max-size, --bug, --id and --all"
        )
    with opened(stores, live=False, writes=True) as found:
        bug = None if group is None else the_bug(found, group)
        since = None if older_than is None else time.time_ns() - older_than
        query = IssueQuery(until_wall_ns=since, fingerprint=bug)
        if everything and not yes:
            _ask(found)
        for store in found:
            words = _cleaned(store, query, keep, max_size, ids)
            click.echo(f"{store.folder}: {words}" if len(found) > 1 else words)
    return 0


def _cleaned(
    store: Store, query: IssueQuery, keep: int | None, max_size: int | None, ids: Sequence[str]
) -> str:
    """Deletes these ids, or all but what is kept, or what the query finds; says what was deleted."""
    if ids:
        return f"Deleted {count_of(store.maintenance.delete_records(ids), 'record')}."
    before = store.reader.totals(STALLS).issues
    if max_size is not None:
        deleted = store.maintenance.shrink(max_size)
    elif keep is not None:
        deleted = store.maintenance.delete_all_but_newest(keep)
    else:
        deleted = store.maintenance.delete(query)
    stalls = min(max(before - store.reader.totals(STALLS).issues, 0), deleted)
    others = deleted - stalls
    issues = f" and {count_of(others, 'other issue')}" if others else ""
    return f"Deleted {count_of(stalls, 'stall')}{issues}."


def _ask(stores: Sequence[Store]) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("--all asks first, and there is no terminal to ask on: add --yes")
    counts = (f"{count_of(one.reader.totals(STALLS).issues, 'stall')} in {one.folder}" for one in stores)
    click.confirm(f"Delete {', '.join(counts)}?", abort=True, err=True)
