"""One issue of any kind but stalls, with everything that is known of it; and its bug."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.document.makers import dim, facts, line, name, number, part, prose, said, strong
from loopcanary.document.parts import Block, Document, Facts, Head, Heading, Indented, Items, Table, TableRow
from loopcanary.document.verdict import advice, verdict, where
from loopcanary.model.units import format_duration
from loopcanary.registry import said_of
from loopcanary.report.bug import LATEST_MAX, drawn, grouped, seen, session_of, sums
from loopcanary.report.stacks import stack_frames, stack_parts
from loopcanary.report.stall import NOTHING, process_words
from loopcanary.report.times import moment
from loopcanary.words.lags import evidence_of
from loopcanary.words.text import printable
from loopcanary.words.waiting import thread_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.model import LagIssue, Session, Stall
    from loopcanary.model.search import IssueGroup
    from loopcanary.report.model import IssueDetails, Report

_STACKS_MAX = 8


def issue_document(report: Report) -> Document:
    return Document(_blocks(report.issues[0], report))


def issue_bug_document(report: Report) -> Document:
    """The report's one bug: figures, its longest issue in full, its latest ones."""
    group = report.issue_groups[0]
    heading = Heading(said(strong(printable(group.title, 300))))
    blocks: list[Block] = [heading, Indented(tuple(_together(group, report)))]
    blocks += part("The longest one", _blocks(report.worst_issues[group.fingerprint], report))
    return Document((*blocks, *_latest(group, report)))


def _together(group: IssueGroup, report: Report) -> Iterator[Block]:
    yield sums(group)
    yield seen(group, None, report.generated_wall_ns)
    yield from drawn(sorted((issue.began_wall_ns, issue.duration_ns) for issue in report.issues))


def _blocks(issue: LagIssue, report: Report) -> tuple[Block, ...]:
    title = strong(printable(issue.title, 300))
    heading = Heading(said(number(f"{issue.kind.value} {format_duration(issue.duration_ns)}"), "  ", title))
    return heading, Indented(tuple(_body(issue, report)))


def _body(issue: LagIssue, report: Report) -> Iterator[Block]:
    details = report.issue_details
    if issue.culprit is not None:
        yield from where(issue.culprit, issue.cause)
    yield line(verdict(issue.cause, None))
    yield Items(tuple(said(prose(words)) for words in evidence_of(issue)))
    yield facts(("try", advice(issue.advice)))
    yield NOTHING
    yield _circumstances(issue, session_of(report, issue), details)
    yield from said_of(issue, "parts") or ()
    yield from _stalls(issue, details)
    if details is None or not any(stall in details.stalls for stall in issue.stalls):
        # What the issue itself has kept: for when its stalls are gone.
        yield from stack_parts(issue.stacks, _STACKS_MAX)


def _circumstances(issue: LagIssue, session: Session | None, details: IssueDetails | None) -> Facts:
    began = f"{moment(issue.began_wall_ns)}, lasted {format_duration(issue.duration_ns)}"
    figures = said_of(issue, "figures")
    before = facts(
        ("began", began),
        ("loop", said(name(issue.loop), f" on {thread_by_name(issue.thread)}")),
        ("scene", name(issue.scene)),
    )
    after = facts(
        ("process", process_words(issue, session)),
        ("grouped", grouped(details.parts) if details is not None else None),
        ("bug", name(issue.fingerprint, 300)),
        ("id", name(issue.id, 300)),
    )
    return Facts((*before.rows, *(figures.rows if figures is not None else ()), *after.rows))


def _stalls(issue: LagIssue, details: IssueDetails | None) -> Iterator[Block]:
    """The stalls in that time, with their stacks as far as they are kept."""
    known = details.stalls if details is not None else {}
    blocks: list[Block] = []
    for stall_id in issue.stalls:
        stall = known.get(stall_id)
        if stall is None:
            blocks.append(line("stall ", name(stall_id), dim("  not kept any more")))
        else:
            blocks += _stall(stall)
    yield from part("stalls in that time", blocks)


def _stall(stall: Stall) -> Iterator[Block]:
    length = number(format_duration(stall.duration_ns))
    ran = said(dim("  in "), name(stall.callback)) if stall.callback else ""
    yield line("stall ", name(stall.id), "  ", length, f"  {stall.cause.value}", ran)
    for stack in stall.stacks[:_STACKS_MAX]:
        held = line(dim(f"stack that held {format_duration(stack.weight_ns)}"))
        yield Indented((held, Indented((stack_frames(stack),))))


def _latest(group: IssueGroup, report: Report) -> Iterator[Block]:
    shown = report.issues[:LATEST_MAX]
    rows = tuple(
        TableRow(
            (
                said(moment(issue.began_wall_ns)),
                said(number(format_duration(issue.duration_ns))),
                said(name(issue.id)),
            )
        )
        for issue in shown
    )
    blocks: list[Block] = [Table((Head("began"), Head("length", is_number=True), Head("id")), rows)]
    if group.count > len(shown):
        blocks.append(line(dim(f"and {group.count - len(shown):,} before")))
    yield from part("Latest", [Indented(tuple(blocks))])
