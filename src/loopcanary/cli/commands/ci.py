"""`loopcanary ci`: a command with everything in it watched, and judged by a budget."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from loopcanary.cli.ci_settings import CiSettings, ci_settings
from loopcanary.cli.known_bugs import known_bugs, new_bugs, write_bugs
from loopcanary.cli.opening import opened, store_option
from loopcanary.cli.output import show, write
from loopcanary.cli.param_types import WORD
from loopcanary.cli.program import watched_environment
from loopcanary.cli.refusals import FAILED_CHECK, refuse
from loopcanary.cli.settings import loaded
from loopcanary.facts import working_folder
from loopcanary.model import IssueKind, Startup
from loopcanary.model.config import OFF
from loopcanary.model.search import IssueQuery, of_type
from loopcanary.protocols.stores import IssueStore
from loopcanary.report import text
from loopcanary.report.ci.budget import Judged, budget_document, judged
from loopcanary.report.model import build

_BUGS_SHOWN = 5
_STEP_NS = 20_000_000
"""The kernel's start times have steps of 10 ms."""
_NOT_FOUND, _NOT_RUNNABLE, _SIGNALLED = 127, 126, 128
"""The exit statuses of shells."""


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@store_option
@click.option("--threshold", type=WORD, metavar="DURATION", help="What counts as a stall. Default: 100ms.")
@click.argument("words", metavar="-- COMMAND [ARGS]...", nargs=-1, type=click.UNPROCESSED, required=True)
def command(*, store: Path | None, threshold: str | None, words: tuple[str, ...]) -> int:
    """Run a command, watch every Python process in it, and compare the result with a budget.

    The table [tool.loopcanary.ci] of pyproject.toml has the budget, and the files to write (html, sarif,
    markdown). Exits with the command's status, or with 70 if that is 0 and a limit is exceeded.
    """
    wanted = ci_settings(working_folder())
    known = None if wanted.baseline is None else known_bugs(wanted.baseline)
    startup = wanted.budget.startup_ns is not None or None
    config = loaded({"store": store, "threshold": threshold, "startup": startup, "console": OFF})
    environment, notice = watched_environment(config)
    if notice:
        refuse(notice)
    folder = environment["LOOPCANARY_STORE"]
    if not folder:
        raise click.UsageError("no store can be written: name a folder with --store")
    del environment["LOOPCANARY_RUN_PID"]  # of a program that takes the place of this process
    begin_wall_ns = time.time_ns() - _STEP_NS
    status = _run(words, environment)
    with opened((Path(folder),)) as [found]:
        query = IssueQuery(since_wall_ns=begin_wall_ns)
        limits = _judge(found.reader, query, wanted, known)
        _show(found.reader, query, limits)
        _write(found.reader, query, wanted, known)
    broken = [limit for limit in limits if limit.is_broken]
    for limit in broken:
        refuse(f"{limit.name}: {limit.found}, allowed {limit.limit}: {limit.where or 'see above'}")
    return status or (FAILED_CHECK if broken else 0)


def _run(words: tuple[str, ...], environment: dict[str, str]) -> int:
    """Runs the command; returns its exit status as a shell has it."""
    try:
        status = subprocess.call(words, env=environment)  # noqa: S603 - the user's own command
    except FileNotFoundError:
        refuse(f"{words[0]}: command not found")
        return _NOT_FOUND
    except OSError as error:
        refuse(f"{words[0]} cannot be run: {error.strerror}")
        return _NOT_RUNNABLE
    return status if status >= 0 else _SIGNALLED - status


def _judge(
    source: IssueStore, query: IssueQuery, wanted: CiSettings, known: frozenset[str] | None
) -> list[Judged]:
    new = len(new_bugs(source, query, known or ()))
    starts = source.groups(replace(query, kind=IssueKind.STARTUP))
    longest = max(starts, key=lambda start: start.max_ns, default=None)
    found = of_type(Startup, [longest and source.issue(longest.worst_id)])
    start = found[0] if found else None
    return judged(wanted.budget, source.sessions(query, 0), source.groups(query.stalls, 0), start, new)


def _report(source: IssueStore, query: IssueQuery, limit: int) -> Any:
    return build(source, query, limit=limit, now_wall_ns=time.time_ns())


def _show(source: IssueStore, query: IssueQuery, limits: list[Judged]) -> None:
    """Prints the worst bugs, then the budget."""
    from loopcanary.cli.screen import Screen

    show(_report(source, query, _BUGS_SHOWN), Screen())
    if limits:
        click.echo()
        text.show(budget_document(limits), Screen())


def _write(source: IssueStore, query: IssueQuery, wanted: CiSettings, known: frozenset[str] | None) -> None:
    from loopcanary.cli.commands.report import write_page

    for form, path in wanted.files.items():
        if form == "html":
            write_page(source, query, 20, path)
        elif form == "markdown":
            write(_report(source, query, 20), form, path)
        else:
            write_bugs(_report(source, query, 0), known, form, path)
