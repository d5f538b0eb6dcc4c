"""Starts, slow methods, traced calls of a stall: phases and calls, one inside the other."""

from __future__ import annotations

from loopcanary.document.makers import dim, facts, line, name, part, place_of, said
from loopcanary.document.parts import Block, Facts, Pieces, Tree, TreeRow
from loopcanary.model import Phase, SlowMethod, StackFrame, Stall, Startup, TracedCalls, TracedWork
from loopcanary.model.call_tree import heaviest, levels
from loopcanary.model.issues.slow_method import ROWS_MAX
from loopcanary.model.issues.startup import PHASES_MAX
from loopcanary.model.units import format_duration
from loopcanary.words.text import count_of
from loopcanary.words.traced import (
    compared_words,
    imports_words,
    left_out_words,
    loaded_words,
    phase_words,
    reached_words,
    work_words,
)

_CALLS_MAX = 40
_WORK_MAX = 12
_WORK_LEAST = 2
_COLUMNS = ("took", "itself")
_BAR = 24


def start_figures(start: Startup) -> Facts:
    """Cold or warm, of which program, against which limit."""
    run = f"{format_duration(start.run_ns)} for loopcanary's own command" if start.run_ns else None
    exact = f"the begin is known to {format_duration(start.step_ns)}" if start.step_ns else None
    return facts(
        ("start", start.start.value),
        ("program", name(start.program)),
        ("limit", _limit_words(start)),
        ("reached", "; ".join(map(reached_words, start.milestones)) or None),
        ("imports", imports_words(start)),
        ("before", run),
        ("clock", None if run else exact),
    )


def method_figures(slow: SlowMethod) -> Facts:
    return facts(("limit", _limit_words(slow)))


def _limit_words(issue: Startup | SlowMethod) -> str | None:
    if not issue.threshold_ns:
        return None
    return f"{format_duration(issue.threshold_ns)}{'' if issue.is_news else ', and it was within the limit'}"


def start_parts(start: Startup) -> tuple[Block, ...]:
    phases = start.phases[:PHASES_MAX]
    rows = tuple(
        TreeRow(
            (*_times(phase.duration_ns, phase.self_ns), _bar(phase, start.duration_ns)),
            level,
            said(phase_words(phase), dim(f"  {more}") if (more := loaded_words(phase)) else ""),
            is_key=phase is start.slowest,
        )
        for phase, level in zip(phases, levels([phase.depth for phase in phases]), strict=True)
    )
    left_out = start.left_out + len(start.phases) - len(phases)
    more = f"and {count_of(left_out, 'short phase')}" if left_out > 0 else ""
    return _tree("phases", rows, more, columns=("took", "itself", "when"))


def _bar(phase: Phase, whole_ns: int) -> str:
    """When it was in the start, as `....====........`."""
    if whole_ns <= 0:
        return ""
    begin = min(max(phase.offset_ns * _BAR // whole_ns, 0), _BAR - 1)
    end = min(max(-(-(phase.offset_ns + phase.duration_ns) * _BAR // whole_ns), begin + 1), _BAR)
    return "." * begin + "=" * (end - begin) + "." * (_BAR - end)


def method_parts(slow: SlowMethod) -> tuple[Block, ...]:
    shown = slow.rows[:ROWS_MAX]
    rows = tuple(
        TreeRow(
            _times(row.total_ns, row.self_ns),
            level,
            _call_of(row.frame, row.count, is_open=row.open),
            is_key=row is slow.key_row,
        )
        for row, level in zip(shown, levels([row.depth for row in shown]), strict=True)
    )
    return (
        *_tree("calls", rows, left_out_words(slow, len(shown))),
        *_work_parts(slow.work),
    )


def calls_parts(stall: Stall) -> tuple[Block, ...]:
    """What the thread called in a stall, the heaviest of it, and whether its samples say the same."""
    return tree_of_calls(stall.calls or TracedCalls(), compared_words(stall))


def tree_of_calls(calls: TracedCalls, *more: str) -> tuple[Block, ...]:
    """The heaviest of them; `more`: lines below."""
    kept = heaviest(calls.rows, _CALLS_MAX, depth=lambda row: row.depth, weight=lambda row: row.total_ns)
    shown = [calls.rows[index] for index in kept]
    rows = tuple(
        TreeRow(_times(row.total_ns, row.self_ns), level, _call_of(row.frame, row.calls, is_open=row.open))
        for row, level in zip(shown, levels([row.depth for row in shown]), strict=True)
    )
    return (
        *_tree("calls", rows, left_out_words(calls, len(shown)), *more),
        *_work_parts(calls.work),
    )


def _work_parts(work: tuple[TracedWork, ...]) -> tuple[Block, ...]:
    """The same time by callbacks and tasks; of one alone the issue says which it is."""
    if len(work) < _WORK_LEAST:
        return ()
    rows = tuple(
        TreeRow((format_duration(one.total_ns), f"{one.times:,}"), 0, said(name(work_words(one), 100)))
        for one in work[:_WORK_MAX]
    )
    more = len(work) - len(rows)
    return _tree("work", rows, f"and {more:,} more" if more > 0 else "", columns=("took", "times"))


def _tree(
    title: str, rows: tuple[TreeRow, ...], *more: str, columns: tuple[str, ...] = _COLUMNS
) -> tuple[Block, ...]:
    return part(title, [Tree(columns, rows), *(line(dim(one)) for one in more)] if rows else [])


def _times(total_ns: int, self_ns: int) -> tuple[str, str]:
    return format_duration(total_ns), format_duration(self_ns)


def _call_of(frame: StackFrame, count: int, *, is_open: bool = False) -> Pieces:
    times = f" x{count:,}" if count > 1 else ""
    place = place_of(frame.file, frame.line, is_own=False)
    return said(name(frame.qualname, 80), f"{times}  ", place, dim("  not returned") if is_open else "")
