"""The list of issues of all kinds but stalls: one bug after the other, most time first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.document.makers import dim, facts, line, name, number, part, said, sentences, strong
from loopcanary.document.parts import Block, Head, Indented, Table, TableRow
from loopcanary.document.verdict import advice
from loopcanary.model.units import format_duration
from loopcanary.report.times import age
from loopcanary.words.frames import issues_title
from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.model import LagIssue
    from loopcanary.model.search import IssueGroup
    from loopcanary.report.model import Report

_ISSUES_MAX = 20
_TITLE_MAX = 200


def issues_part(report: Report) -> Iterator[Block]:
    """A row a bug, with its title and what would help."""
    groups = report.issue_groups[:_ISSUES_MAX]
    if not groups:
        return
    columns = (
        *(Head(words, is_number=True) for words in ("#", "total", "count", "median", "max")),
        Head("kind"),
        Head("last", is_number=True),
        Head("cause"),
        Head("bug"),
    )
    rows = [_row(at, group, report) for at, group in enumerate(groups, start=1)]
    blocks: list[Block] = [Table(columns, tuple(rows))]
    left_out = report.issue_places - len(groups)
    if left_out > 0:
        blocks.append(Indented((line(dim(f"and {count_of(left_out, 'more bug')}")),)))
    yield from part(issues_title(groups), blocks)


def _row(at: int, group: IssueGroup, report: Report) -> TableRow:
    cells = (
        said(dim(str(at))),
        said(number(format_duration(group.total_ns))),
        said(f"{group.count:,}"),
        said(format_duration(group.p50_ns)),
        said(format_duration(group.max_ns)),
        said(group.kind.value.removeprefix("slow-")),
        said(age(group.last_wall_ns, report.generated_wall_ns)),
        said(strong(group.cause.value)),
        said(name(group.fingerprint, 40)),
    )
    return TableRow(cells, below=tuple(_below(group, report.worst_issues.get(group.fingerprint))))


def _below(group: IssueGroup, worst: LagIssue | None) -> Iterator[Block]:
    yield sentences(printable(group.title, _TITLE_MAX))
    yield line(dim("the longest is " if group.count > 1 else "its id is "), name(group.worst_id))
    if worst is not None and worst.advice and not worst.stalls:  # else the stalls' own entries have it
        yield facts(("try", advice(worst.advice, 300)))
