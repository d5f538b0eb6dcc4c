"""`loopcanary report`: what stalled, bug by bug."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from loopcanary.cli import NOTHING_FOUND, refuse
from loopcanary.cli.formats import LIMITS, current_folder, format_option, write
from loopcanary.cli.opening import opened, reads_stores
from loopcanary.cli.output import STDOUT, opened_output, output_option
from loopcanary.cli.selecting import selection_options
from loopcanary.cli.words import Number
from loopcanary.model.search import IssueQuery
from loopcanary.model.stall import Cause
from loopcanary.ui.sources import as_one

if TYPE_CHECKING:
    from pathlib import Path

    from loopcanary.protocols.stores import IssueStore


@click.command()
@reads_stores
@format_option("html")
@output_option
@selection_options
@click.option("--limit", type=Number(int, 0), metavar="N", help="At most N bugs, stalls and runs; 0: all.")
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
) -> int:
    """Show what stalled: bugs by total time, latest stalls, runs.

    Includes stalls in progress, and stalls of processes that were killed. --format html writes one page in
    one file, to be mailed or kept with a CI job.
    """
    if form == "html" and (missing := _missing_for_pages()):
        return refuse(f'the HTML report needs {missing}: pip install "loopcanary[ui]"')
    query = IssueQuery(
        since_wall_ns=since,
        until_wall_ns=until,
        causes=frozenset(Cause(cause) for cause in causes),
        words=words,
        session=session,
    )
    with opened(stores) as found:
        source = as_one([store.reader for store in found])
        most = LIMITS[form] if limit is None else limit
        if form == "html":
            return _write_page(source, query, most, output)
        from loopcanary.assembly.explanations import delays
        from loopcanary.report.model import build

        report = build(
            source,
            query,
            limit=most,
            now_wall_ns=time.time_ns(),
            with_worst=form != "json",
            delays=delays,
            stores=[one.folder for one in found],
        )
        if report.finds_nothing and form != "json" and output == STDOUT and query != IssueQuery():
            click.echo("No stall matches.")
        else:
            write(report, form, output)
        return NOTHING_FOUND if report.finds_nothing and query != IssueQuery() else 0


def _missing_for_pages() -> str:
    """The library that pages are made with and that is not installed; empty where all are."""
    try:
        import loopcanary.ui.document  # noqa: F401 - whether it can be imported is the question
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("jinja2", "markupsafe"):
            raise
        return missing
    return ""


def _write_page(source: IssueStore, query: IssueQuery, limit: int, output: str) -> int:
    from loopcanary.cli.bundling import made_by
    from loopcanary.cli.tools import page_tools
    from loopcanary.ui.document import document
    from loopcanary.ui.pages.report import report_page

    page = report_page(source, query, page_tools(), limit=limit, now_wall_ns=time.time_ns())
    with opened_output(output) as out:
        out.write(document(page, current_folder(), made_by()))
    return NOTHING_FOUND if page.finds_nothing and query != IssueQuery() else 0
