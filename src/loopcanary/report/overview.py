"""The whole report: bugs, latest stalls, other issues, runs with their loops, frames and input."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.document.makers import NOTHING, dim, line, part, said, strong
from loopcanary.document.parts import Block, Document, Heading, Indented
from loopcanary.model.units import format_duration
from loopcanary.report.bug import latest
from loopcanary.report.bugs import bugs_of
from loopcanary.report.model import Report
from loopcanary.report.runs import runs_part
from loopcanary.report.traces import trace_parts
from loopcanary.words.commands import reading
from loopcanary.words.kinds import issues_title
from loopcanary.words.text import count_of, printable


def overview(report: Report, *, in_detail: bool) -> Document:
    """The report. `in_detail`: everything about each bug's longest stall, for readers without a terminal."""
    return Document(
        (
            *(_nothing(report) if report.is_empty else _bugs(report, in_detail=in_detail)),
            *_others(report),
            *runs_part(report.sessions, report.issues, in_detail=in_detail),
            *trace_parts(report.sessions),
        )
    )


def _nothing(report: Report) -> Iterator[Block]:
    yield Heading(said(strong("No stall was recorded.")))
    yield from (line(dim("store "), printable(str(store))) for store in report.stores)


def _bugs(report: Report, *, in_detail: bool) -> Iterator[Block]:
    found = report.sums
    watched = f"; watched for {report.watched.words}" if report.watched.total_ns else ""
    yield Heading(
        said(
            strong(f"{count_of(found.issues, 'stall')} in {count_of(found.groups, 'bug')}"),
            f", {format_duration(found.total_ns)} in all{watched}",
        )
    )
    yield NOTHING
    yield from bugs_of(report, report.groups, found.groups, in_detail=in_detail)
    # `show` counts the bugs of the whole store.
    which = report.groups[0].fingerprint if report.is_filtered and report.groups else "1"
    yield Indented((line(dim(f"Details of a bug: {reading(f'show {which}', report.stores)}")),))
    numbers = {group.fingerprint: number for number, group in enumerate(report.groups, start=1)}
    yield from latest(report.stalls, found.issues, numbers)


def _others(report: Report) -> Iterator[Block]:
    """Bugs of other kinds; their numbers follow those of all stalls, as `loopcanary show` takes them."""
    groups, first = report.issue_groups, report.sums.groups + 1
    blocks = bugs_of(report, groups, report.issue_places, first=first) if groups else ()
    yield from part(issues_title(groups), blocks)
