"""Findings in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from loopcanary.model.issues.finding import FindingRule
from loopcanary.model.units import format_duration, format_size
from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    from loopcanary.model.issues.finding import ImportedFinding

_NAME_MAX = 120
_SAID_MAX = 500
_RULES: Mapping[FindingRule, str] = {
    FindingRule.MAIN_THREAD_IO: "file I/O on the main thread",
    FindingRule.SMALL_BUFFER: "file I/O in small pieces",
    FindingRule.REPEATED_READ: "a file is read again and again",
    FindingRule.NOT_CLOSED: "a resource is not closed",
    FindingRule.OTHER_IO: "file I/O",
    FindingRule.TABLE_SCAN: "a query reads the whole table",
    FindingRule.TEMPORARY_TREE: "a query sorts without an index",
    FindingRule.LARGER_INDEX: "a query could use an index of more columns",
    FindingRule.AUTO_INCREMENT: "a column is AUTOINCREMENT",
    FindingRule.SELECT_ALL: "a query selects all columns",
    FindingRule.WITHOUT_ROWID: "a table needs no row ids",
    FindingRule.PREPARED_STATEMENT: "a statement is not prepared",
    FindingRule.REDUNDANT_INDEX: "an index is redundant",
    FindingRule.OTHER_SQL: "a database is used badly",
    FindingRule.ACTIVITY_LEAK: "an activity leaks",
    FindingRule.DUPLICATED_BITMAP: "a bitmap is in memory more than once",
    FindingRule.PRIORITY_CHANGED: "the main thread's priority was changed",
    FindingRule.TIMER_SLACK_CHANGED: "the main thread's timers come late",
}
_ADVICE: Mapping[FindingRule, str] = {
    FindingRule.MAIN_THREAD_IO: "read and write files on another thread",
    FindingRule.SMALL_BUFFER: "use a buffered stream, or a buffer of 4 KiB and more",
    FindingRule.REPEATED_READ: "read the file once, and keep what is needed of it",
    FindingRule.NOT_CLOSED: "close it where it is used (`use`, try-with-resources)",
    FindingRule.ACTIVITY_LEAK: "let go of the activity where the chain begins, when it is destroyed",
    FindingRule.DUPLICATED_BITMAP: "load the image once, and keep it in a cache that all share",
}


def finding_words(issue: ImportedFinding) -> str:
    """`file I/O in small pieces: orders.json in Orders.load`."""
    at, culprit = issue.at, issue.culprit
    file, database = (path.rpartition("/")[2] for path in (at.file, at.database))
    what = at.owner.rpartition(".")[2] or file or at.table or at.sql or database
    place = f" in {printable(culprit.qualname, _NAME_MAX)}" if culprit is not None else ""
    return f"{_RULES[issue.rule]}{f': {printable(what, _NAME_MAX)}' if what else ''}{place}"


def advice_on(rule: FindingRule) -> str | None:
    """What helps against it; None: the monitor itself has to say it."""
    return _ADVICE.get(rule)


def of_finding(issue: ImportedFinding) -> Iterator[str]:
    """Its figures, and what the monitor said."""
    if issue.duration_ns:
        thread = printable(issue.thread, _NAME_MAX)
        yield f"it took {format_duration(issue.duration_ns)} on the thread {thread}"
    if issue.rule is FindingRule.DUPLICATED_BITMAP:
        wasted = format_size(max(issue.operations - 1, 0) * issue.size_bytes)
        yield f"{issue.operations:,} copies of {format_size(issue.size_bytes)}: {wasted} too many"
    elif issue.operations:
        largest = f", at most {format_size(issue.buffer_bytes)} at once" if issue.buffer_bytes else ""
        moved = format_size(issue.moved_bytes)
        yield f"{count_of(issue.operations, 'operation')} moved {moved}{largest}"
    if issue.repeats:
        yield f"the same was read {count_of(issue.repeats, 'time')}"
    for one in filter(None, issue.at.said):
        yield printable(one, _SAID_MAX)
