"""A piece of work that took too long, as a tree of the calls in it (Matrix: evil method).

The rows are a tree in one list, each before the calls inside it (`depth`), as in the original's `stack`
field. Calls of one function by one path are one row, with their number.
"""

from __future__ import annotations

from dataclasses import field

from loopcanary.late_dataclass import dataclass
from loopcanary.model.calls import TracedWork
from loopcanary.model.issues.facts import ReportedFacts
from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.spelling import spelled
from loopcanary.model.stack_frame import StackFrame

ROWS_MAX = 200
"""The longest rows of a tree that are kept; `left_out` and `left_out_ns` count the others."""
KEY_SHARE = 0.3
"""The original's Constants.FILTER_STACK_KEY_ALL_PERCENT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """Calls of one function by one path."""

    frame: StackFrame = field(metadata=spelled(flat=True))
    """The function; `line`: where it begins."""
    depth: int = 0
    """How many rows it is inside of."""
    count: int = 1
    """How many calls."""
    calls: int = 0
    """The same, as a stall's rows call it; filled in where it is 0."""
    total_ns: int
    self_ns: int
    """Without the calls inside it, as far as these were measured."""
    open: bool = False
    """One of the calls had not returned when the record ended."""
    is_dispatch: bool = False
    """The loop's own call, in which all of the work is: no key of any bug."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowMethod(ReportedFacts):
    """A piece of work over its limit, with its calls."""

    kind = IssueKind.SLOW_METHOD
    threshold_ns: int
    """Longer is slow."""
    rows: tuple[CallRow, ...] = ()
    left_out: int = 0
    """How many rows were not kept."""
    left_out_ns: int = 0
    """What these took by themselves."""
    lost: int = 0
    """At least so many begins and ends of calls were overwritten before they were read."""
    key: int | None = None
    """The row that the fingerprint is made of, as an index into `rows`; None: there is none."""
    work: tuple[TracedWork, ...] = ()
    """The same calls by the callbacks and tasks that began them, the longest first."""

    @property
    def searched(self) -> tuple[str, ...]:
        return tuple(row.frame.qualname for row in self.rows)

    @property
    def key_row(self) -> CallRow | None:
        """The row that the fingerprint is made of; None: there is none."""
        key = self.key
        return self.rows[key] if key is not None and 0 <= key < len(self.rows) else None


def key_of(rows: tuple[CallRow, ...], duration_ns: int) -> int | None:
    """The index of the row that names the bug: of those that have at least 30 % of the work's time, the one
    with the largest (depth + 1) x total, the first of equal ones; the loop's own row only where there is no
    other. Where none has so much, the first row. None of no rows.

    The original's stackKey (TraceDataUtils.getTreeKey): deep enough to say where, and with enough of the time
    to be the reason.
    """
    candidates = [index for index, row in enumerate(rows) if row.total_ns >= KEY_SHARE * duration_ns]
    own = [index for index in candidates if not rows[index].is_dispatch] or candidates
    if not own:
        return 0 if rows else None
    return max(own, key=lambda index: ((rows[index].depth + 1) * rows[index].total_ns, -index))
