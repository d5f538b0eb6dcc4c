"""Starts and slow methods: phases and calls, one inside the other."""

from __future__ import annotations

from loopcanary.document.makers import dim, facts, line, name, part, place_of, said
from loopcanary.document.parts import Block, Facts, Pieces, Tree, TreeRow
from loopcanary.model import CallRow, SlowMethod, Startup
from loopcanary.model.call_tree import levels
from loopcanary.model.issues.slow_method import ROWS_MAX
from loopcanary.model.issues.startup import PHASES_MAX
from loopcanary.model.units import format_duration
from loopcanary.words.text import count_of
from loopcanary.words.traced import phase_words

_COLUMNS = ("took", "itself")


def start_figures(start: Startup) -> Facts:
    """Cold or warm, of which program, against which limit."""
    return facts(
        ("start", start.start.value), ("program", name(start.program)), ("limit", _limit_words(start))
    )


def method_figures(slow: SlowMethod) -> Facts:
    return facts(("limit", _limit_words(slow)))


def _limit_words(issue: Startup | SlowMethod) -> str:
    return f"{format_duration(issue.threshold_ns)}{'' if issue.is_news else ', and it was within the limit'}"


def start_parts(start: Startup) -> tuple[Block, ...]:
    phases = start.phases[:PHASES_MAX]
    rows = tuple(
        TreeRow(_times(phase.duration_ns, phase.self_ns), level, said(phase_words(phase)))
        for phase, level in zip(phases, levels([phase.depth for phase in phases]), strict=True)
    )
    left_out = start.left_out + len(start.phases) - len(phases)
    more = f"and {count_of(left_out, 'short phase')}" if left_out > 0 else ""
    return _tree("phases", rows, more)


def method_parts(slow: SlowMethod) -> tuple[Block, ...]:
    shown = slow.rows[:ROWS_MAX]
    rows = tuple(
        TreeRow(_times(row.total_ns, row.self_ns), level, _call(row), is_key=row is slow.key_row)
        for row, level in zip(shown, levels([row.depth for row in shown]), strict=True)
    )
    left_out = slow.left_out + len(slow.rows) - len(shown)
    own = f", {format_duration(slow.left_out_ns)} by themselves" if slow.left_out_ns > 0 else ""
    return _tree("calls", rows, f"and {count_of(left_out, 'short row')}{own}" if left_out > 0 else "")


def _tree(title: str, rows: tuple[TreeRow, ...], more: str) -> tuple[Block, ...]:
    return part(title, [Tree(_COLUMNS, rows), line(dim(more))] if rows else [])


def _times(total_ns: int, self_ns: int) -> tuple[str, str]:
    return format_duration(total_ns), format_duration(self_ns)


def _call(row: CallRow) -> Pieces:
    times = f" x{row.count:,}" if row.count > 1 else ""
    return said(
        name(row.frame.qualname, 80), f"{times}  ", place_of(row.frame.file, row.frame.line, is_own=False)
    )
