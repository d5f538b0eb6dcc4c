"""One bug: what its issues say together, its longest one in full, its latest ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from loopcanary.document.makers import dim, facts, filled, line, name, number, part, said, strong
from loopcanary.document.parts import (
    Bars,
    Block,
    Document,
    Facts,
    Head,
    Heading,
    Indented,
    Paragraph,
    Piece,
    Pieces,
    Table,
    TableRow,
    Tone,
)
from loopcanary.document.times import age, moment, span
from loopcanary.document.verdict import SEVERITY_TONES, ended_words
from loopcanary.model import Issue, Severity
from loopcanary.model.search import IssueGroup
from loopcanary.model.units import format_duration, format_length
from loopcanary.protocols.kinds import kind_named
from loopcanary.report.figures.affected import Affected
from loopcanary.report.figures.gains import gain_words
from loopcanary.report.figures.trend import course, trend_words
from loopcanary.report.issue import grouped, issue_blocks, session_of
from loopcanary.report.model import Figures, Report
from loopcanary.words.causes import has_cause, severity_word
from loopcanary.words.text import count_of, printable

_NAMES_MAX = 5
LATEST_MAX = 10


def bug_document(report: Report, group: IssueGroup) -> Document:
    blocks: list[Block] = [
        Heading(said(strong(printable(group.title, 300)))),
        Indented(tuple(_together(group, report))),
    ]
    worst = report.worst.get(group.fingerprint)
    if worst is not None:
        own = report.details and replace(report.details, parts=())  # they are said above
        title = "The longest one" if group.max_ns else "The latest one"
        blocks += part(title, issue_blocks(worst, session_of(report, worst), own))
    found: Sequence[Issue] = report.stalls if report.groups else report.issues
    return Document((*blocks, *latest(found, group.count)))


def _together(group: IssueGroup, report: Report) -> Iterator[Block]:
    yield sums(group)
    yield seen(group, report.figures.get(group.fingerprint), report.generated_wall_ns)
    details = report.details
    if details is None:
        return
    yield from _drawn([(mark.began_wall_ns, mark.duration_ns) for mark in details.history])
    if details.affected is not None:
        yield _affected(details.affected)
    yield facts(("grouped", grouped(details.parts)))


def sums(group: IssueGroup) -> Paragraph:
    noun = kind_named(group.kind).noun
    if not group.max_ns:
        return line(number(count_of(group.count, noun)))
    lengths = f"median {format_duration(group.p50_ns)}, max {format_duration(group.max_ns)}"
    total = number(f"{format_duration(group.total_ns)} in {count_of(group.count, noun)}")
    cause = f", {group.cause.value}" if has_cause(group) else ""
    return line(total, f", {lengths}{cause}")


def seen(group: IssueGroup, figures: Figures | None, now_wall_ns: int) -> Facts:
    """When its issues were seen, their trend, and what the bug's end would save."""
    return facts(
        ("seen", seen_words(group.first_wall_ns, group.last_wall_ns, now_wall_ns)),
        ("trend", trend_words(figures.trend) if figures else None),
        ("gain", ", ".join(gain_words(figures.gains)) if figures else None),
    )


def seen_words(first_wall_ns: int, last_wall_ns: int, now_wall_ns: int) -> str:
    """Two moments, and how long ago the last one was."""
    last = age(last_wall_ns, now_wall_ns)
    ago = "just now" if last == "now" else f"the last {last} ago"
    return f"{span(first_wall_ns, last_wall_ns)}, {ago}"


def _drawn(marks: Sequence[tuple[int, int]]) -> Iterator[Bars]:
    """Stalled time over the wall time, of (wall time, length) marks in order; nothing if all are at one
    moment."""
    if len(marks) > 1 and marks[0][0] != marks[-1][0] and any(length for _, length in marks):
        first, last = moment(marks[0][0]), moment(marks[-1][0])
        yield Bars("time", course(marks), (first, last[11:] if last[:10] == first[:10] else last))


def _affected(found: Affected) -> Facts:
    startup = f"{found.startup:,} of {found.examined:,} before the loop first waited"
    return facts(
        ("scenes", _counted(found.scenes, found.examined)),
        ("tasks", _counted(found.named_tasks, found.examined)),
        ("callback", _counted(found.callbacks, found.examined)),
        ("threads", _counted(found.threads, found.examined)),
        ("causes", _counted(found.causes, found.examined) if len(found.causes) > 1 else None),
        ("startup", startup if found.startup else None),
    )


def _counted(counts: Sequence[tuple[str, int]], examined: int) -> Pieces:
    found: list[Piece | str] = []
    for word, count in counts[:_NAMES_MAX]:
        found += [", " if found else "", name(word)]
        found.append("" if count == examined else f" ({count:,} of {examined:,})")
    left = len(counts) - _NAMES_MAX
    return said(*found, f", and {left:,} more" if left > 0 else "")


def latest(issues: Sequence[Issue], count: int, numbers: Mapping[str, int] | None = None) -> Iterator[Block]:
    """The latest of `count` issues, with the numbers that their bugs have in the report."""
    found = issues[:LATEST_MAX]
    rows = tuple(
        _latest_row(issue, "" if numbers is None else numbers.get(issue.fingerprint, "-")) for issue in found
    )
    blocks: list[Block] = [filled(Table(_LATEST_COLUMNS, rows))]
    if count > len(found):
        blocks.append(line(dim(f"and {count - len(found):,} before")))
    yield from part("Latest", [Indented(tuple(blocks))])


_LATEST_COLUMNS = (
    Head("bug", is_number=True),
    Head("began"),
    Head("length", is_number=True),
    Head("id"),
    Head(""),
)


def _latest_words(issue: Issue) -> str:
    """How it ended, else how grave it was; empty for a short one that ended by itself."""
    severity = "" if issue.severity is Severity.STALL else severity_word(issue.severity)
    return ended_words(issue) or severity


def _latest_row(issue: Issue, bug: int | str) -> TableRow:
    return TableRow(
        (
            said(dim(str(bug))),
            said(moment(issue.began_wall_ns)),
            said(Piece(format_length(issue.duration_ns), SEVERITY_TONES[issue.severity])),
            said(name(issue.id, 48)),
            said(Piece(_latest_words(issue), Tone.ALARM)),
        )
    )
