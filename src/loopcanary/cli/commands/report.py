"""`loopcanary report`: what stalled, bug by bug."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from loopcanary.cli.bundling import made_by
from loopcanary.cli.ci.baseline import known_bugs
from loopcanary.cli.ci.bugs import CI_FORMS, NEW_BUG, tell_new, write_bugs
from loopcanary.cli.formats import LIMITS, current_folder, format_option, missing_for_pages, write
from loopcanary.cli.opening import opened, reads_stores
from loopcanary.cli.output import STDOUT, opened_output, output_option
from loopcanary.cli.refusals import NOTHING_FOUND, refuse
from loopcanary.cli.selecting import selection_options
from loopcanary.cli.words import Number, Word
from loopcanary.model.search import IssueQuery
from loopcanary.model.stall import Cause
from loopcanary.ui.sources import as_one

if TYPE_CHECKING:
    from pathlib import Path

    from loopcanary.protocols.stores import IssueStore


@click.command()
@reads_stores
@format_option("html", *CI_FORMS)
@output_option
@selection_options
@click.option("--limit", type=Number(int, 0), metavar="N", help="At most N bugs, stalls and runs; 0: all.")
@click.option(
    "--baseline",
    type=Word(),
    metavar="KNOWN",
    help="Bugs known already: a store, a bundle, a JSON report, or BRANCH:FILE as git has it.",
)
@click.option(
    "--fail-on-new", is_flag=True, help=f"Exit with {NEW_BUG} if there is a bug that --baseline lacks."
)
def command(
    *,
    stores: tuple[Path, ...],
    form: str,
    output: str,
    since: int | None,
    until: int | None,
    causes: tuple[str, ...],
    words: tuple[str, ...],
    session: str | None,
    limit: int | None,
    baseline: str | None,
    fail_on_new: bool,
) -> int:
    """Show what stalled: bugs by total time, latest stalls, runs.

    Includes stalls in progress, and stalls of processes that were killed. --format html writes one page in
    one file, to be mailed or kept with a CI job; github, sarif, gitlab and junit are for CI systems.
    """
    if fail_on_new and baseline is None:
        raise click.UsageError("--fail-on-new: --baseline says which bugs are known")
    if form == "html" and (missing := missing_for_pages()):
        return refuse(missing)
    known = None if baseline is None else known_bugs(baseline)
    query = IssueQuery(
        since_wall_ns=since,
        until_wall_ns=until,
        causes=frozenset(Cause(cause) for cause in causes),
        words=words,
        session=session,
    )
    most = LIMITS[form] if limit is None else limit
    with opened(stores) as found:
        source = as_one([store.reader for store in found])
        if form == "html":
            finds_nothing = write_page(source, query, most, output)
        else:
            folders = [one.folder for one in found]
            finds_nothing = _write_report(
                source, query, limit=most, form=form, output=output, folders=folders, known=known
            )
        if fail_on_new and known is not None and tell_new(source, query, known):
            return NEW_BUG
    return NOTHING_FOUND if finds_nothing and query != IssueQuery() else 0


def _write_report(
    source: IssueStore,
    query: IssueQuery,
    *,
    limit: int,
    form: str,
    output: str,
    folders: list[Path],
    known: frozenset[str] | None,
) -> bool:
    """Whether it finds nothing."""
    from loopcanary.assembly.explanations import delays
    from loopcanary.report.model import build

    report = build(
        source,
        query,
        limit=limit,
        now_wall_ns=time.time_ns(),
        with_worst=form != "json",
        delays=delays,
        stores=folders,
    )
    if form in CI_FORMS:
        write_bugs(report, known, form, output)
    elif report.finds_nothing and form != "json" and output == STDOUT and query != IssueQuery():
        click.echo("No stall matches.")
    else:
        write(report, form, output)
    return report.finds_nothing


def write_page(source: IssueStore, query: IssueQuery, limit: int, output: str) -> bool:
    """Whether it finds nothing."""
    from loopcanary.cli.tools import page_tools
    from loopcanary.ui.document import document
    from loopcanary.ui.pages.report import report_page

    page = report_page(source, query, page_tools(), limit=limit, now_wall_ns=time.time_ns())
    with opened_output(output) as out:
        out.write(document(page, current_folder(), made_by()))
    return page.finds_nothing
