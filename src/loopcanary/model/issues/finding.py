"""What a monitor of another kind found wrong, whether anything was late by it or not: a file that is read in
small pieces, a query without an index, an object that leaked. Today only imports have them."""

from __future__ import annotations

from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model.issues.facts import ReportedFacts
from loopcanary.model.issues.kind import IssueKind


class FindingRule(Enum):
    """What is wrong."""

    MAIN_THREAD_IO = "main-thread-io"
    SMALL_BUFFER = "small-buffer"
    REPEATED_READ = "repeated-read"
    NOT_CLOSED = "not-closed"
    OTHER_IO = "other-io"
    TABLE_SCAN = "table-scan"
    TEMPORARY_TREE = "temporary-tree"
    """SQLite sorts in a tree that it makes for this query."""
    LARGER_INDEX = "larger-index"
    AUTO_INCREMENT = "auto-increment"
    SELECT_ALL = "select-all"
    WITHOUT_ROWID = "without-rowid"
    PREPARED_STATEMENT = "prepared-statement"
    REDUNDANT_INDEX = "redundant-index"
    OTHER_SQL = "other-sql"
    ACTIVITY_LEAK = "activity-leak"
    DUPLICATED_BITMAP = "duplicated-bitmap"
    PRIORITY_CHANGED = "priority-changed"
    """Of the main thread."""
    TIMER_SLACK_CHANGED = "timer-slack-changed"
    """Of the main thread: its timers come late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAt:
    """Where a finding is. Empty: the monitor does not say, or it is none of such."""

    file: str = ""
    database: str = ""
    table: str = ""
    sql: str = ""
    owner: str = ""
    """What leaked: its class; of a bitmap, the hash of its pixels."""
    chain: tuple[str, ...] = ()
    """What holds it, from the root on."""
    said: tuple[str, ...] = ()
    """More that the monitor says, a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFinding(ReportedFacts):
    """`duration_ns`: what it cost, as far as the monitor measured it; 0: it did not."""

    kind = IssueKind("finding")
    rule: FindingRule
    at: FoundAt
    operations: int = 0
    """Reads and writes; copies of a bitmap."""
    repeats: int = 0
    """How many times the same was read."""
    size_bytes: int = 0
    """Of the file, of one bitmap."""
    buffer_bytes: int = 0
    """The most that one operation moved."""
    moved_bytes: int = 0
    """By all operations."""

    @property
    def searched(self) -> tuple[str, ...]:
        at = self.at
        return tuple(filter(None, (self.rule.value, at.file, at.database, at.table, at.sql, at.owner)))
