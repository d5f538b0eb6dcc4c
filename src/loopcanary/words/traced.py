"""Starts and slow methods in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model.issues.startup import PhaseKind
from loopcanary.model.units import format_duration
from loopcanary.words.text import printable

if TYPE_CHECKING:
    from loopcanary.model.issues.slow_method import SlowMethod
    from loopcanary.model.issues.startup import Phase, Startup

_NAME_MAX = 200
_KINDS = {
    PhaseKind.INTERPRETER: "interpreter start",
    PhaseKind.SITE: "site",
    PhaseKind.IMPORT: "import",
    PhaseKind.READY: "until the application is ready",
    PhaseKind.TURN: "until the loop's first turn",
    PhaseKind.IDLE: "until the loop first waits",
    PhaseKind.ANSWER: "until the first request is answered",
    PhaseKind.FRAME: "until the first frame is shown",
    PhaseKind.OTHER: "(no name)",
}


def phase_words(phase: Phase) -> str:
    """`import numpy`, `interpreter start`, or what the program calls it."""
    name = printable(phase.name, _NAME_MAX)
    if phase.kind is PhaseKind.IMPORT:
        return f"import {name}".rstrip()
    return name or _KINDS[phase.kind]


def start_words(start: Startup) -> str:
    """`cold start took 12.4 s`."""
    kind = "start" if start.start.value == "unknown" else f"{start.start.value} start"
    return f"{kind} took {format_duration(start.duration_ns)}"


def method_words(slow: SlowMethod) -> str:
    """`load_orders took 1.20 s (orders.py:12)`."""
    took, row = format_duration(slow.duration_ns), slow.key_row
    if row is None:
        return f"a piece of work took {took}"
    frame = row.frame
    place = f"{frame.file.rpartition('/')[2]}:{frame.line}"
    return printable(f"{frame.qualname} took {format_duration(row.total_ns)} of {took} ({place})", _NAME_MAX)
