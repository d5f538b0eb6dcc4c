"""Findings of other monitors: what is wrong, where, with which figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from loopcanary.document.makers import facts, name, part, said, sentences
from loopcanary.document.parts import Block, Facts, Items
from loopcanary.document.verdict import where
from loopcanary.model.issues.finding import FindingRule, ImportedFinding
from loopcanary.model.stack_frame import plain_function
from loopcanary.model.units import format_duration, format_size
from loopcanary.protocols.kinds import Kind, function_identity
from loopcanary.words.text import count_of, printable

_SQL_MAX = 2_000
_IDENTITY_SQL_MAX = 300
_CHAIN_MAX = 100
_VALUES = re.compile(r"'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b")
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


class FindingKind(Kind[ImportedFinding]):
    """What a monitor of another kind found wrong, whether anything was late by it or not."""

    issue_class = ImportedFinding
    words = "finding"
    list_words = "findings"

    def title(self, issue: ImportedFinding) -> str:
        """`file I/O in small pieces: orders.json in Orders.load`."""
        at, culprit = issue.at, issue.culprit
        file, database = (path.rpartition("/")[2] for path in (at.file, at.database))
        what = at.owner.rpartition(".")[2] or file or at.table or at.sql or database
        place = f" in {printable(culprit.qualname, _NAME_MAX)}" if culprit is not None else ""
        return f"{_RULES[issue.rule]}{f': {printable(what, _NAME_MAX)}' if what else ''}{place}"

    def advice(self, issue: ImportedFinding) -> str | None:
        """What helps against it; None: the monitor itself has to say it."""
        return _ADVICE.get(issue.rule)

    def evidence(self, issue: ImportedFinding) -> Iterator[str]:
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

    def why(self, issue: ImportedFinding) -> Iterator[Block]:
        """The line to change, where it is known, and the figures. The rule says all that a cause would."""
        if issue.culprit is not None:
            yield from where(issue.culprit, issue.cause)
        yield Items(tuple(said(words) for words in self.evidence(issue)))

    def figures(self, issue: ImportedFinding) -> Facts:
        """The rule, and the file, table or object that the finding is about."""
        at = issue.at
        size = f", {format_size(issue.size_bytes)}" if issue.size_bytes and at.file else ""
        return facts(
            ("rule", issue.rule.value),
            ("file", said(name(at.file, 200), size) if at.file else None),
            ("database", name(at.database, 200)),
            ("table", name(at.table, 120)),
            ("object", name(at.owner, 200)),
        )

    def parts(self, issue: ImportedFinding) -> tuple[Block, ...]:
        """The statement, and what holds the object."""
        held = Items(tuple(said(printable(one, 300)) for one in issue.at.chain[:_CHAIN_MAX]))
        return (
            *part("statement", [sentences(printable(issue.at.sql, _SQL_MAX))] if issue.at.sql else []),
            *part("held by, from the root on", [held] if issue.at.chain else []),
        )

    def identity(self, issue: ImportedFinding) -> tuple[str, ...]:
        """The rule; and the statement without its values, the table, what leaked, the culprit's function, or
        the file's name, the first that there is."""
        at, culprit = issue.at, issue.culprit
        rule = f"rule={issue.rule.value}"
        if at.sql:
            return rule, f"statement={_VALUES.sub('?', ' '.join(at.sql.split()))[:_IDENTITY_SQL_MAX]}"
        if at.table or at.owner:
            return rule, f"table={at.table}" if at.table else f"object={at.owner}"
        if culprit is not None:
            return rule, *function_identity(plain_function(culprit.qualname), culprit.file)
        return rule, f"file={at.file.rpartition('/')[2]}"
