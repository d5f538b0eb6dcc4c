"""Trees of calls and of phases in a document: rows one inside the other."""

from __future__ import annotations

from loopcanary.document.makers import dim, line, name, part, place_of, said
from loopcanary.document.parts import Block, Pieces, Tree, TreeRow
from loopcanary.model import SlowMethod, StackFrame, Startup, TracedCalls, TracedWork
from loopcanary.model.calls import heaviest, levels
from loopcanary.model.units import format_duration
from loopcanary.words.traced import left_out_words, work_words

_CALLS_MAX = 40
_WORK_MAX = 12
_WORK_LEAST = 2
_COLUMNS = ("took", "itself")


def tree_of_calls(calls: TracedCalls, *more: str) -> tuple[Block, ...]:
    """The heaviest of them; `more`: lines below."""
    kept = heaviest(calls.rows, _CALLS_MAX, depth=lambda row: row.depth, weight=lambda row: row.total_ns)
    shown = [calls.rows[index] for index in kept]
    rows = tuple(
        TreeRow(times_of(row.total_ns, row.self_ns), level, call_of(row.frame, row.calls, is_open=row.open))
        for row, level in zip(shown, levels([row.depth for row in shown]), strict=True)
    )
    return (
        *tree_part("calls", rows, left_out_words(calls, len(shown)), *more),
        *work_parts(calls.work),
    )


def work_parts(work: tuple[TracedWork, ...]) -> tuple[Block, ...]:
    """The same time by callbacks and tasks; of one alone the issue says which it is."""
    if len(work) < _WORK_LEAST:
        return ()
    rows = tuple(
        TreeRow((format_duration(one.total_ns), f"{one.times:,}"), 0, said(name(work_words(one), 100)))
        for one in work[:_WORK_MAX]
    )
    more = len(work) - len(rows)
    return tree_part("work", rows, f"and {more:,} more" if more > 0 else "", columns=("took", "times"))


def tree_part(
    title: str, rows: tuple[TreeRow, ...], *more: str, columns: tuple[str, ...] = _COLUMNS
) -> tuple[Block, ...]:
    return part(title, [Tree(columns, rows), *(line(dim(one)) for one in more)] if rows else [])


def times_of(total_ns: int, self_ns: int) -> tuple[str, str]:
    return format_duration(total_ns), format_duration(self_ns)


def call_of(frame: StackFrame, count: int, *, is_open: bool = False) -> Pieces:
    times = f" x{count:,}" if count > 1 else ""
    place = place_of(frame.file, frame.line, is_own=False)
    return said(name(frame.qualname, 80), f"{times}  ", place, dim("  not returned") if is_open else "")


def limit_words(issue: Startup | SlowMethod) -> str | None:
    if not issue.threshold_ns:
        return None
    return f"{format_duration(issue.threshold_ns)}{'' if issue.is_news else ', and it was within the limit'}"
