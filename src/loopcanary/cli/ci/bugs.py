"""Bugs as CI systems read them, and which of them are new."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loopcanary.cli.bundling import made_by
from loopcanary.cli.formats import current_folder
from loopcanary.cli.output import opened_output
from loopcanary.cli.refusals import refuse
from loopcanary.model.stall import Cause
from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    from collections.abc import Collection

    from loopcanary.model.search import IssueGroup, IssueQuery
    from loopcanary.protocols.stores import IssueStore
    from loopcanary.report.model import Report

CI_FORMS = ("github", "sarif", "gitlab", "junit")
NEW_BUG = 70
"""Exit status, as of `run --fail-on-stall`: EX_SOFTWARE of sysexits.h."""


def write_bugs(report: Report, known: frozenset[str] | None, form: str, output: str) -> None:
    """Writes the bugs of a report. `known`: those of the baseline; None: there is none."""
    from loopcanary.report.ci import formats
    from loopcanary.report.ci.bugs import bugs
    from loopcanary.report.ci.repository import Repository

    found = bugs(report, Repository.around(Path(current_folder())), known or ())
    version = made_by().removeprefix("loopcanary").strip() or "0"
    text = formats.render(form, found, version=version, has_baseline=known is not None)
    with opened_output(output) as out:
        out.write(text.encode("utf-8", "backslashreplace"))


def new_bugs(source: IssueStore, query: IssueQuery, known: Collection[str]) -> list[IssueGroup]:
    """The bugs that the query finds and that are not known; what the host did is none of the program's."""
    found = source.groups(query, 0)
    return [one for one in found if one.fingerprint not in known and one.cause is not Cause.HOST]


def tell_new(source: IssueStore, query: IssueQuery, known: Collection[str]) -> bool:
    """Whether there are new bugs; says so in one line on stderr."""
    new = new_bugs(source, query, known)
    if new:
        worst = f"{printable(new[0].title, 200)} ({new[0].fingerprint})"
        refuse(f"{count_of(len(new), 'new bug')}, the worst: {worst}")
    return bool(new)
