"""`loopcanary show`: everything about one bug, one stall, or one issue of another kind."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeAlias

import click

from loopcanary.cli import refuse
from loopcanary.cli.formats import LIMITS, format_option, write
from loopcanary.cli.opening import NOTHING_FOUND, one_store, opened
from loopcanary.cli.selecting import CANDIDATES_MAX, ambiguity
from loopcanary.cli.words import Word
from loopcanary.model.search import OTHERS, STALLS, IssueQuery
from loopcanary.words.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loopcanary.store.reader import Reader

_RANK_DIGITS_MAX = 3
"""A longer number is the start of a fingerprint or of an id."""
_VERSIONS = ("2:", "1:")
"""What fingerprints begin with, the present one first (docs/internals/diagnosis.md)."""


@click.command(short_help="Show everything about one bug, stall or other issue.")
@click.argument("which", metavar="BUG_OR_STALL", type=Word())
@one_store
@format_option()
def command(which: str, store: Path | None, form: str) -> int:
    """Show everything about one bug, stall or other issue.

    A bug goes by its number in `loopcanary report`, or by its fingerprint; a stall or other issue by its id.
    The start of a fingerprint or id is enough if only one begins so.
    """
    with opened(store) as source:
        if source is None:
            return NOTHING_FOUND
        ranked = _is_rank(which)
        reader = source.reader
        found = _of_rank(reader, int(which)) if ranked else _matches(reader, which)
        if not found:
            refuse(
                f"{source.folder} has no bug number {which}; `loopcanary report` numbers them"
                if ranked
                else f"no fingerprint or id in {source.folder} begins with {printable(which, 60)}; "
                "`loopcanary report` has them at the end of their lines"
            )
            return NOTHING_FOUND
        if len(found) > 1:
            return refuse(ambiguity(which, [name for _, name in found]))
        [(show, name)] = found
        show(reader, name, form)
        return 0


_Show: TypeAlias = "Callable[[Reader, str, str], None]"


def _is_rank(which: str) -> bool:
    return which.isascii() and which.isdecimal() and len(which) <= _RANK_DIGITS_MAX


def _of_rank(source: Reader, rank: int) -> list[tuple[_Show, str]]:
    """The bug with this number in a report of the whole store: those of stalls first, by stalled time."""
    stalls = source.totals(STALLS).groups
    query, at = (STALLS, rank) if rank <= stalls else (OTHERS, rank - stalls)
    ranking = source.groups(query, at) if at else []
    return [(_show_bug, ranking[-1].fingerprint)] if len(ranking) == at > 0 else []


def _matches(source: Reader, which: str) -> list[tuple[_Show, str]]:
    """What is meant, with what shows it; what is given in full is the one."""
    enough = CANDIDATES_MAX + 1
    ids = source.like("id", which, IssueQuery(), enough)
    if which in ids:
        return [(_show_issue, which)]
    # People leave out the version of a fingerprint.
    starts = [which] if ":" in which else [which, *(version + which for version in _VERSIONS)]
    bugs: list[str] = []
    for start in starts:
        begin_so = source.like("fingerprint", start, IssueQuery(), enough)
        if start in begin_so:
            return [(_show_bug, start)]
        bugs = bugs or begin_so
    return [*((_show_bug, name) for name in bugs), *((_show_issue, name) for name in ids)]


def _show_bug(source: Reader, fingerprint: str, form: str) -> None:
    from loopcanary.assembly.explanations import delays, why_grouped
    from loopcanary.report.model import of_bug

    limit, now_wall_ns = LIMITS[form], time.time_ns()
    report = of_bug(
        source, fingerprint, limit=limit, now_wall_ns=now_wall_ns, explain=why_grouped, delays=delays
    )
    if report is None:
        raise click.ClickException(f"nothing here can read the issues of {fingerprint}")
    write(report, form)


def _show_issue(source: Reader, issue_id: str, form: str) -> None:
    from loopcanary.assembly.explanations import why_grouped
    from loopcanary.report.model import of_issue

    issue = source.issue(issue_id)
    if issue is not None:
        write(of_issue(source, issue, now_wall_ns=time.time_ns(), explain=why_grouped), form)
