"""`loopcanary report`: what stalled, bug by bug."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from loopcanary.cli.known_bugs import CI_FORMS, known_bugs, tell_new, write_bugs
from loopcanary.cli.opening import opened, reads_stores
from loopcanary.cli.output import (
    LIMITS,
    STDOUT,
    format_option,
    made_by,
    missing_for_pages,
    opened_output,
    output_option,
    page_tools,
    write,
)
from loopcanary.cli.param_types import WORD, number
from loopcanary.cli.refusals import FAILED_CHECK, NOTHING_FOUND, refuse
from loopcanary.cli.selecting import Selection, selection_options
from loopcanary.facts import working_folder
from loopcanary.model.search import IssueQuery
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.model import build
from loopcanary.ui.sources import as_one


@click.command()
@reads_stores
@format_option("html", *CI_FORMS)
@output_option
@selection_options
@click.option("--limit", type=number(int, 0), metavar="N", help="At most N bugs, stalls and runs; 0: all.")
@click.option(
    "--baseline",
    type=WORD,
    metavar="KNOWN",
    help="Known bugs: a store, a bundle, a JSON report, or BRANCH:FILE in git.",
)
@click.option(
    "--fail-on-new", is_flag=True, help=f"Exit with {FAILED_CHECK} if there is a bug that --baseline lacks."
)
def command(
    *,
    stores: tuple[Path, ...],
    form: str,
    output: str,
    limit: int | None,
    baseline: str | None,
    fail_on_new: bool,
    **asked: Any,
) -> int:
    """Show what stalled: bugs by total time, latest stalls, runs.

    Includes stalls in progress, and stalls of processes that were killed. --format html writes one page in
    one file, to be mailed or kept with a CI job; github, sarif and junit are for CI systems.
    """
    if fail_on_new and baseline is None:
        raise click.UsageError("--fail-on-new needs --baseline, which names the known bugs")
    if form == "html" and (missing := missing_for_pages()):
        return refuse(missing)
    known = None if baseline is None else known_bugs(baseline)
    query = Selection(**asked).query
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
            return FAILED_CHECK
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
    """Writes the report; returns whether it found nothing."""
    from loopcanary.assembly.explanations import delays

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
    """Writes the report; returns whether it found nothing."""
    from loopcanary.ui.document import document
    from loopcanary.ui.pages.report import report_page

    page = report_page(source, query, page_tools(), limit=limit, now_wall_ns=time.time_ns())
    with opened_output(output) as out:
        out.write(document(page, working_folder(), made_by()))
    return page.finds_nothing
