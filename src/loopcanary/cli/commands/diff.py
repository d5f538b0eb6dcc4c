"""`loopcanary diff`: what became new, gone, worse, better."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopcanary.cli.opening import opened, reads_stores
from loopcanary.cli.output import LIMITS, format_option
from loopcanary.cli.param_types import MOMENT, WORD, number
from loopcanary.cli.refusals import FAILED_CHECK, NOTHING_FOUND, refuse
from loopcanary.facts import working_folder
from loopcanary.model.search import IssueQuery

if TYPE_CHECKING:
    from loopcanary.report.diff.comparison import Comparison, Side
    from loopcanary.store import Store


@click.command()
@reads_stores
@click.option(
    "--before",
    type=MOMENT,
    metavar="TIME",
    help="A: what began before this time: 2h (ago), 2026-11-21T05:00.",
)
@click.option(
    "--after",
    type=MOMENT,
    metavar="TIME",
    help="B: what began at this time or later. Of --before and --after one is enough.",
)
@click.option("--version-a", metavar="VERSION", type=WORD, help="A: runs of this version of the program.")
@click.option("--version-b", metavar="VERSION", type=WORD, help="B: runs of this version of the program.")
@click.option(
    "--fail-on-worse", is_flag=True, help=f"Exit with {FAILED_CHECK} if a bug is certainly new or worse."
)
@click.option("--limit", type=number(int, 0), metavar="N", help="At most N bugs; 0: all.")
@format_option()
def command(
    *,
    stores: tuple[Path, ...],
    before: int | None,
    after: int | None,
    version_a: str | None,
    version_b: str | None,
    fail_on_worse: bool,
    limit: int | None,
    form: str,
) -> int:
    """Compare two stores, or one store by time or version.

    Lists bugs that are new, gone, worse or better, by stalled time per watched hour, each with the range in
    which the true value lies.
    """
    if len(stores) > 2:
        raise click.UsageError("two stores can be compared, not more")
    if len(stores) < 2 and before is None and after is None and (version_a is None or version_b is None):
        raise click.UsageError(
            "say what to compare: two stores, or one by --before, --after, or --version-a and --version-b"
        )
    with opened(stores) as sources:
        first, second = sources[0], sources[-1]
        # One store by one moment; two stores by two, if any.
        end, begin = (before, after) if len(sources) > 1 else (before or after, after or before)
        from loopcanary.report.diff.comparison import compare

        comparison = compare(
            _side(first, version_a, until=end),
            _side(second, version_b, since=begin),
            now_wall_ns=time.time_ns(),
        )
    for name, side in (("A", comparison.before), ("B", comparison.after)):
        if not side.hours:
            refuse(f"nothing was watched in {name} ({side.label}): there is nothing to compare")
            return NOTHING_FOUND
    _write(comparison, form, LIMITS[form] if limit is None else limit)
    return FAILED_CHECK if fail_on_worse and comparison.is_worse else 0


def _side(source: Store, version: str | None, *, since: int | None = None, until: int | None = None) -> Side:
    from loopcanary.document.times import moment
    from loopcanary.report.diff.comparison import Side

    words = [str(source.folder).removeprefix(f"{working_folder()}/")]
    words += [f"version {version}"] if version is not None else []
    words += [f"from {moment(since)}"] if since is not None else []
    words += [f"until {moment(until)}"] if until is not None else []
    return Side(
        source=source.reader,
        query=IssueQuery(since_wall_ns=since, until_wall_ns=until),
        label=", ".join(words),
        version=version,
    )


def _write(comparison: Comparison, form: str, limit: int) -> None:
    from loopcanary.report.diff.document import diff_document

    if form == "text":
        from loopcanary.cli.screen import Screen
        from loopcanary.report import text

        text.show(diff_document(comparison, limit), Screen())
    elif form == "json":
        from loopcanary.report.diff import json

        click.echo(json.render(comparison, limit), nl=False)
    else:
        from loopcanary.document import markdown

        click.echo(markdown.render(diff_document(comparison, limit), working_folder()), nl=False)
