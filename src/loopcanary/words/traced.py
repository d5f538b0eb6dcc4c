"""Phases of starts and traced calls in words, as several parts say them."""

from __future__ import annotations

from loopcanary.model.calls import TracedCalls, TracedWork
from loopcanary.model.issues.slow_method import SlowMethod
from loopcanary.model.issues.startup import Phase, PhaseKind
from loopcanary.model.stack_frame import StackFrame
from loopcanary.model.stall import Stall
from loopcanary.model.units import format_duration
from loopcanary.words.android import LOOPER
from loopcanary.words.text import count_of, printable

_NAME_MAX = 200
_AGREED_WELL = 0.8
_KINDS = {
    PhaseKind.INTERPRETER: "interpreter start",
    PhaseKind.SITE: "site",
    PhaseKind.IMPORT: "import",
    PhaseKind.READY: "until the application is ready",
    PhaseKind.MAIN: "main module",
    PhaseKind.LISTENING: "until a port listens",
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


def left_out_words(calls: TracedCalls | SlowMethod, shown: int) -> str:
    """`and 12 short rows; at least 4,096 begins and ends of calls were overwritten`. Empty: all is shown."""
    less = calls.left_out + len(calls.rows) - shown
    own = f", {format_duration(calls.left_out_ns)} by themselves" if calls.left_out_ns > 0 else ""
    found = [f"and {count_of(less, 'short row')}{own}"] if less > 0 else []
    if calls.lost:
        found.append(
            f"at least {calls.lost:,} begins and ends of calls were overwritten before they were read"
        )
    return "; ".join(found)


def work_words(work: TracedWork) -> str:
    """`worker (task worker-3)`."""
    name = work.name or ("other work" if work.task is None else "")
    return f"{name} (task {work.task})".lstrip() if work.task is not None else name


def compared_words(stall: Stall) -> str:
    """How far a stall's samples agree with its traced calls on where the time went; empty where one is
    missing. A check of both: what was sampled in a function's own code, against its own time."""
    traced, samples = _own_times(stall), _own_samples(stall)
    is_foreign = stall.loop == LOOPER  # of one stack, or of none but the calls themselves
    if not traced or not samples or is_foreign or (stall.calls and stall.calls.lost):
        return ""
    agreed = sum(min(share, samples.get(function, 0.0)) for function, share in traced.items())
    words = f"samples and calls agree on {agreed:.0%} of the time"
    if agreed >= _AGREED_WELL:
        return words
    most = max({**samples, **traced}, key=lambda one: abs(traced.get(one, 0.0) - samples.get(one, 0.0)))
    name = printable(most[1], _NAME_MAX)
    return (
        f"{words}: {name} has {traced.get(most, 0):.0%} by its calls, {samples.get(most, 0):.0%} by samples"
    )


def _own_times(stall: Stall) -> dict[tuple[str, str], float]:
    """By file and function the share of the calls' time that was in none of those inside it."""
    found: dict[tuple[str, str], int] = {}
    for row in () if stall.calls is None else stall.calls.rows:
        function = _function(row.frame)
        found[function] = found.get(function, 0) + row.self_ns
    return _shares(found)


def _own_samples(stall: Stall) -> dict[tuple[str, str], float]:
    """The same by samples, in the functions that were traced: of a stack its innermost one counts."""
    known = {_function(row.frame) for row in stall.calls.rows} if stall.calls else set()
    found: dict[tuple[str, str], int] = {}
    for stack in stall.stacks:
        function = next((one for frame in stack.frames if (one := _function(frame)) in known), None)
        if function is not None:
            found[function] = found.get(function, 0) + stack.weight_ns
    return _shares(found)


def _function(frame: StackFrame) -> tuple[str, str]:
    """Comprehensions and generator expressions count as the function that they are in, as samples have it."""
    return frame.file, frame.qualname.partition(".<locals>.<")[0]


def _shares(times: dict[tuple[str, str], int]) -> dict[tuple[str, str], float]:
    whole = sum(times.values())
    return {one: time / whole for one, time in times.items()} if whole > 0 else {}
