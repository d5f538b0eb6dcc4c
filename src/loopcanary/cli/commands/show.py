"""`loopcanary show`: everything about one bug, one stall, or one issue of another kind."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import click

from loopcanary.cli.opening import opened, reads_stores
from loopcanary.cli.output import LIMITS, format_option, write
from loopcanary.cli.param_types import WORD
from loopcanary.cli.refusals import NotFoundError
from loopcanary.cli.selecting import ambiguity, bugs_like, ids_like
from loopcanary.model import Issue
from loopcanary.model.search import OTHERS, STALLS, IssueQuery
from loopcanary.protocols.stores import IssueStore
from loopcanary.ui.sources import as_one
from loopcanary.words.commands import reading
from loopcanary.words.text import printable

_RANK_DIGITS_MAX = 3
"""A longer number is the start of a fingerprint or of an id."""


@click.command(short_help="Show everything about one bug, stall or other issue.")
@click.argument("which", metavar="BUG_OR_STALL", type=WORD)
@reads_stores
@format_option()
def command(which: str, stores: tuple[Path, ...], form: str) -> int:
    """Show everything about one bug, stall or other issue.

    Name a bug by its number in `loopcanary report`, or by its fingerprint; a stall or other issue by its id.
    The first characters of a fingerprint or id are enough if they are unique.
    """
    with opened(stores) as opened_stores:
        source = as_one([store.reader for store in opened_stores])
        show, name = _one_of(source, which, [store.folder for store in opened_stores])
        show(source, name, form)
        return 0


def issue_of(source: IssueStore, which: str, folders: Sequence[Path]) -> Issue:
    """The stall or other issue, or the longest one of the bug, that `which` names. NotFoundError,
    ClickException: none, or several."""
    show, name = _one_of(source, which, folders)
    if show is _show_bug:
        query = IssueQuery(fingerprint=name)
        name = next(iter(source.groups(query, 1))).worst_id
    issue = source.issue(name)
    if issue is None:
        raise click.ClickException(f"nothing here can read {printable(name, 60)}")
    return issue


def _one_of(source: IssueStore, which: str, folders: Sequence[Path]) -> tuple[_Show, str]:
    found = _of_rank(source, int(which)) if _is_rank(which) else _matches(source, which)
    if not found:
        raise NotFoundError(_missing(which, folders))
    if len(found) > 1:
        raise click.ClickException(ambiguity(which, [name for _, name in found]))
    return found[0]


def _missing(which: str, folders: Sequence[Path]) -> str:
    place, report = " and ".join(map(str, folders)), f"`{reading('report', folders)}`"
    if _is_rank(which):
        return f"{place} has no bug number {which}; {report} shows the numbers"
    return f"no fingerprint or id in {place} begins with {printable(which, 60)}; {report} shows them"


_Show: TypeAlias = "Callable[[IssueStore, str, str], None]"


def _is_rank(which: str) -> bool:
    return which.isascii() and which.isdecimal() and len(which) <= _RANK_DIGITS_MAX


def _of_rank(source: IssueStore, rank: int) -> list[tuple[_Show, str]]:
    """The bug with this number in a report of the whole store: stalls first, by stalled time."""
    stalls = source.totals(STALLS).groups
    query, at = (STALLS, rank) if rank <= stalls else (OTHERS, rank - stalls)
    ranking = source.groups(query, at) if at else []
    return [(_show_bug, ranking[-1].fingerprint)] if len(ranking) == at > 0 else []


def _matches(source: IssueStore, which: str) -> list[tuple[_Show, str]]:
    """The bugs and issues that the text may mean; a full name means one."""
    bugs, ids = bugs_like(source, which), ids_like(source, which, IssueQuery())
    bugs, ids = (() if which in ids else bugs), (() if which in bugs else ids)
    return [*((_show_bug, name) for name in bugs), *((_show_issue, name) for name in ids)]


def _show_bug(source: IssueStore, fingerprint: str, form: str) -> None:
    from loopcanary.assembly.explanations import delays, why_grouped
    from loopcanary.report.model import of_bug

    limit, now_wall_ns = LIMITS[form], time.time_ns()
    report = of_bug(
        source, fingerprint, limit=limit, now_wall_ns=now_wall_ns, explain=why_grouped, delays=delays
    )
    if report is None:
        raise click.ClickException(f"nothing here can read the issues of {fingerprint}")
    write(report, form)


def _show_issue(source: IssueStore, issue_id: str, form: str) -> None:
    from loopcanary.assembly.explanations import why_grouped
    from loopcanary.report.model import of_issue

    issue = source.issue(issue_id)
    if issue is None:
        raise click.ClickException(f"nothing here can read {printable(issue_id, 60)}")
    write(of_issue(source, issue, now_wall_ns=time.time_ns(), explain=why_grouped), form)
