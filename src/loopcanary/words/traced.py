"""Starts and slow methods in words."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from loopcanary.model.issues.startup import CodeOrigin, PhaseKind
from loopcanary.model.units import format_duration, format_size
from loopcanary.words.android import LOOPER
from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    from loopcanary.model.calls import TracedCalls, TracedWork
    from loopcanary.model.issues.slow_method import SlowMethod
    from loopcanary.model.issues.startup import Milestone, Phase, Startup
    from loopcanary.model.stack_frame import StackFrame
    from loopcanary.model.stall import Stall

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


_REACHED = {
    PhaseKind.INTERPRETER: "first line of Python",
    PhaseKind.SITE: "main module",
    PhaseKind.READY: "application ready",
    PhaseKind.TURN: "first turn",
    PhaseKind.IDLE: "loop first waited",
    PhaseKind.LISTENING: "port listening",
    PhaseKind.ANSWER: "first request answered",
    PhaseKind.FRAME: "first frame shown",
    PhaseKind.MAIN: "main module's end",
}


def reached_words(milestone: Milestone) -> str:
    """`port listening after 1.20 s`."""
    name = _REACHED.get(milestone.kind, milestone.kind.value)
    return f"{name} after {format_duration(milestone.offset_ns)}"


def loaded_words(phase: Phase) -> str:
    """`compiled, 34.0 kB read, 3 major faults`; empty: there is nothing out of the ordinary."""
    found = [phase.origin.value] if phase.origin is CodeOrigin.COMPILED else []
    found += [count_of(phase.major_faults, "major fault")] if phase.major_faults else []
    found += ["not over"] if phase.open else []
    return ", ".join(found)


def imports_words(start: Startup) -> str | None:
    """`213 modules, 40 of them compiled; 5.4 MB read`; None: none was seen."""
    if not start.imports:
        return None
    compiled = f", {start.compiled:,} of them compiled" if start.compiled else ""
    faults = f"; {count_of(start.major_faults, 'major fault')}" if start.major_faults else ""
    return f"{count_of(start.imports, 'module')}{compiled}; {format_size(start.bytes_read)} read{faults}"


def start_words(start: Startup) -> str:
    """`cold start took 12.4 s`."""
    kind = "start" if start.start.value == "unknown" else f"{start.start.value} start"
    if start.cut:
        return f"{kind} was cut off after {format_duration(start.duration_ns)}"
    return f"{kind} took {format_duration(start.duration_ns)}"


def run_words(start: Startup) -> str:
    """`warm start 150 ms: 40.1 ms in loopcanary, 61.2 ms in imports (the longest asyncio, 24.0 ms)`, as it is
    said of a run."""
    imports = [phase for phase in start.phases if phase.kind is PhaseKind.IMPORT]
    parts = [f"{format_duration(start.own_ns)} in loopcanary"] if start.own_ns else []
    if imports:
        top = max(imports, key=attrgetter("duration_ns"))
        longest = f"the longest {printable(top.name, _NAME_MAX)}, {format_duration(top.duration_ns)}"
        spent_ns = sum(phase.self_ns for phase in imports)
        parts.append(f"{format_duration(spent_ns)} in imports ({longest})")
    words = start_words(start).replace(" took ", " ", 1)
    return f"{words}: {', '.join(parts)}" if parts else words


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


def method_words(slow: SlowMethod) -> str:
    """`load_orders took 1.20 s (orders.py:12)`."""
    took, row = format_duration(slow.duration_ns), slow.key_row
    if row is None:
        return f"a piece of work took {took}"
    frame = row.frame
    place = f"{frame.file.rpartition('/')[2]}:{frame.line}"
    part = "" if row.total_ns == slow.duration_ns else f"{format_duration(row.total_ns)} of "
    return printable(f"{frame.qualname} took {part}{took} ({place})", _NAME_MAX)
