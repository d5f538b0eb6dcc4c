"""The document of a report: of one bug or issue, or of all: bugs, latest stalls, other issues, runs."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.document.makers import NOTHING, dim, line, part, said, strong
from loopcanary.document.parts import Block, Document, Heading, Indented, Piece, Tone
from loopcanary.model import IssueKind
from loopcanary.model.search import IssueGroup
from loopcanary.model.units import format_duration
from loopcanary.protocols.kinds import issues_title
from loopcanary.report.bug import bug_document, latest
from loopcanary.report.bugs import bugs_of
from loopcanary.report.issue import issue_blocks, session_of
from loopcanary.report.model import Report
from loopcanary.report.runs import runs_part
from loopcanary.report.traces import trace_parts
from loopcanary.words.commands import reading
from loopcanary.words.text import count_of, printable


def overview(report: Report, *, in_detail: bool) -> Document:
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
    yield line(dim(_next_step(report)))


def _next_step(report: Report) -> str:
    """What the reader of an empty report is to look at."""
    for group, step in _hangs(report, IssueKind.BOOT_HANG, IssueKind.EXIT_HANG, IssueKind.DEADLOCK):
        return f"But {printable(group.title)}: {step}"
    return "Does it hang? `loopcanary dump PID` shows its threads, `dump PID --tasks` what tasks wait for."


def _hangs(report: Report, *kinds: IssueKind) -> Iterator[tuple[IssueGroup, str]]:
    """Bugs of these kinds, each with the command that shows it."""
    for number, group in enumerate(report.issue_groups, report.sums.groups + 1):
        if group.kind in kinds:
            yield group, reading(f"show {number}", report.stores)


def _bugs(report: Report, *, in_detail: bool) -> Iterator[Block]:
    for group, step in _hangs(report, IssueKind.DEADLOCK):
        yield line(Piece(f"deadlock: {printable(group.title)}", Tone.ALARM), dim(f": {step}"))
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
    """Bugs of other kinds, numbered after those of stalls, as in `loopcanary show`."""
    groups, first = report.issue_groups, report.sums.groups + 1
    blocks = bugs_of(report, groups, report.issue_places, first=first) if groups else ()
    yield from part(issues_title(groups), blocks)


def document_of(report: Report, *, in_detail: bool = False) -> Document:
    """The report as a document. In detail, for readers without a terminal, the overview has everything about
    each bug's longest stall."""
    about = report.about
    if about is None:
        return overview(report, in_detail=in_detail)
    if isinstance(about, IssueGroup):
        return bug_document(report, about)
    return Document(issue_blocks(about, session_of(report, about), report.details))
