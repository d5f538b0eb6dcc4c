"""The report for people at a terminal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rich.text import Text

from loopcanary.model import StallState
from loopcanary.model.units import format_duration
from loopcanary.report import text_frames, text_issue
from loopcanary.report.text_group import group_lines
from loopcanary.report.text_groups import table
from loopcanary.report.text_loops import sessions
from loopcanary.report.text_pieces import INDENT, Page
from loopcanary.report.text_stall import SEVERITY_STYLES, stall_lines
from loopcanary.report.times import moment
from loopcanary.words.causes import severity_word
from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console

    from loopcanary.model import Issue, Session
    from loopcanary.report.model import Report

_LATEST_MAX = 10
_STATE_WORDS = {StallState.ENDED: "", StallState.ONGOING: "going on", StallState.KILLED: "killed in it"}


def show_report(report: Report, console: Console) -> None:
    """Groups, latest stalls, sessions with their loops."""
    show(console, _overview(report, page_of(console)))


def show_group(report: Report, console: Console) -> None:
    """One bug: what its stalls tell together, its longest stall in full, its latest stalls."""
    show(console, group_page(report, page_of(console)))


def group_page(report: Report, page: Page) -> Iterator[Text]:
    """The lines of it."""
    yield from group_lines(report, page)
    if worst := report.worst.get(report.groups[0].fingerprint):
        yield Text("The longest one", "bold")
        yield from stall_lines(worst, _session(report, worst), page)
    yield from _latest(report)


def show_stall(report: Report, console: Console) -> None:
    """One stall with everything that is known of it."""
    stall = report.stalls[0]
    show(console, stall_lines(stall, _session(report, stall), page_of(console)))


def show_issue_group(report: Report, console: Console) -> None:
    """One bug behind jank, late input or idle work: figures, its longest issue in full, its latest ones."""
    page, worst = page_of(console), report.issue_groups[0].worst
    show(console, text_issue.group_lines(report, page))
    lines = text_issue.issue_lines(worst, _session(report, worst), report, page)
    show(console, [Text("The longest one", "bold"), *lines])
    show(console, text_issue.latest(report))


def show_issue(report: Report, console: Console) -> None:
    """Jank, late input or idle work with everything that is known of it."""
    issue = report.issues[0]
    show(console, text_issue.issue_lines(issue, _session(report, issue), report, page_of(console)))


def page_of(console: Console) -> Page:
    """What the console can show."""
    return Page(width=min(console.width, 120), folder=_folder(), unicode=console.encoding.startswith("utf"))


def show(console: Console, lines: Iterable[Text]) -> None:
    """Prints lines as they are: a wrapped path could not be clicked."""
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - a text is wanted, and "" where the folder is gone
    except OSError:
        return ""


def _session(report: Report, issue: Issue) -> Session | None:
    return next((session for session in report.sessions if session.id == issue.session), None)


def _overview(report: Report, page: Page) -> Iterator[Text]:
    sums = report.sums
    if report.is_empty:
        yield Text("No stall was recorded.", "bold")
        yield Text()
        yield from text_frames.issues(report, page)
        yield from sessions(report.sessions, page)
        yield from text_frames.traces(report.sessions, page)
        return
    watched = f"; watched for {format_duration(report.watched.total_ns)}" if report.watched.total_ns else ""
    yield Text.assemble(
        (f"{count_of(sums.stalls, 'stall')} in {count_of(sums.groups, 'place')}", "bold"),
        f", {format_duration(sums.total_ns)} in all{watched}",
    )
    yield Text()
    yield from table(report, page)
    left_out = sums.groups - len(report.groups)
    if left_out > 0:
        yield Text(f"{INDENT}and {count_of(left_out, 'more place')} (--limit 0 shows all)", "dim")
    yield Text(f"{INDENT}loopcanary show BUG tells all about one", "dim")
    yield Text()
    yield from _latest(report)
    yield Text()
    yield from text_frames.issues(report, page)
    yield from sessions(report.sessions, page)
    yield from text_frames.traces(report.sessions, page)


def _latest(report: Report) -> Iterator[Text]:
    shown = report.stalls[:_LATEST_MAX]
    numbers = {group.fingerprint: str(number) for number, group in enumerate(report.groups, start=1)}
    yield Text("Latest", "bold")
    for stall in shown:
        number = numbers.get(stall.fingerprint, "-") if report.details is None else ""
        word = severity_word(stall.severity)
        state = _STATE_WORDS[stall.state]
        yield Text.assemble(
            (f"{number:>2} ", "dim"),
            moment(stall.began_wall_ns),
            (f"  {word:<5} {format_duration(stall.duration_ns):>8}", SEVERITY_STYLES[word]),
            f"  {printable(stall.id, 48)}",
            (f"  {state}" if state else "", "bold red"),
        )
    if report.sums.stalls > len(shown):
        yield Text(f"{INDENT}and {report.sums.stalls - len(shown):,} before", "dim")
