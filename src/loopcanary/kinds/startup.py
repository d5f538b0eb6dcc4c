"""Starts of programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter

from loopcanary.document.makers import dim, facts, name, said
from loopcanary.document.parts import Block, Facts, TreeRow
from loopcanary.document.trees import limit_words, times_of, tree_part
from loopcanary.model import Session
from loopcanary.model.calls import heaviest, levels
from loopcanary.model.issues.startup import PHASES_MAX, CodeOrigin, Milestone, Phase, PhaseKind, Startup
from loopcanary.model.stall import Cause
from loopcanary.model.units import format_duration, format_size
from loopcanary.protocols.kinds import Kind, refuse_negative
from loopcanary.words.text import count_of, printable
from loopcanary.words.traced import phase_words
from loopcanary.words.waiting import share_words

_NAME_MAX = 200
_PROGRAM_MAX = 500
_LONGEST_NS = 1 << 62
_BAR = 24
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


class StartupKind(Kind[Startup]):
    """A start of a program, slow or not: all are kept for comparison."""

    issue_class = Startup
    words = "startup"
    list_words = "starts"

    def title(self, start: Startup) -> str:
        """`cold start took 12.4 s`."""
        kind = "start" if start.start.value == "unknown" else f"{start.start.value} start"
        if start.cut:
            return f"{kind} was cut off after {format_duration(start.duration_ns)}"
        return f"{kind} took {format_duration(start.duration_ns)}"

    def run(self, start: Startup) -> str:
        """`warm start 150 ms: 40.1 ms in loopcanary, 61.2 ms in imports (the longest asyncio, 24.0 ms)`."""
        imports = [phase for phase in start.phases if phase.kind is PhaseKind.IMPORT]
        parts = [f"{format_duration(start.own_ns)} in loopcanary"] if start.own_ns else []
        if imports:
            top = max(imports, key=attrgetter("duration_ns"))
            longest = f"the longest {printable(top.name, _NAME_MAX)}, {format_duration(top.duration_ns)}"
            spent_ns = sum(phase.self_ns for phase in imports)
            parts.append(f"{format_duration(spent_ns)} in imports ({longest})")
        words = self.title(start).replace(" took ", " ", 1)
        return f"{words}: {', '.join(parts)}" if parts else words

    def evidence(self, start: Startup) -> Iterator[str]:
        """Its length against the limit, and the longest phase."""
        took = format_duration(start.duration_ns)
        limit = f"; the limit is {format_duration(start.threshold_ns)}" if start.threshold_ns else ""
        slowest, most = start.slowest, ""
        if slowest is not None and start.duration_ns > 0:
            share, own = slowest.self_ns / start.duration_ns, format_duration(slowest.self_ns)
            most = f"; {phase_words(slowest)} has the largest own time: {own} ({share_words(share)})"
        yield f"{took}{limit}{most}"
        if start.left_out:
            yield f"{count_of(start.left_out, 'short phase')} left out"

    def figures(self, start: Startup) -> Facts:
        """Cold or warm, of which program, against which limit."""
        run = f"{format_duration(start.run_ns)} for loopcanary's own command" if start.run_ns else None
        exact = f"the start time is known to {format_duration(start.step_ns)}" if start.step_ns else None
        return facts(
            ("start", start.start.value),
            ("program", name(start.program)),
            ("limit", limit_words(start)),
            ("reached", "; ".join(map(_reached_words, start.milestones)) or None),
            ("imports", _imports_words(start)),
            ("before", run),
            ("clock", None if run else exact),
        )

    def parts(self, start: Startup) -> tuple[Block, ...]:
        phases = start.phases[:PHASES_MAX]
        rows = tuple(
            TreeRow(
                (*times_of(phase.duration_ns, phase.self_ns), _bar(phase, start.duration_ns)),
                level,
                said(phase_words(phase), dim(f"  {more}") if (more := _loaded_words(phase)) else ""),
                is_key=phase is start.slowest,
            )
            for phase, level in zip(phases, levels([phase.depth for phase in phases]), strict=True)
        )
        left_out = start.left_out + len(start.phases) - len(phases)
        more = f"and {count_of(left_out, 'short phase')}" if left_out > 0 else ""
        return tree_part("phases", rows, more, columns=("took", "itself", "when"))

    def identity(self, start: Startup) -> tuple[str, ...]:
        """Cold or warm, of which program."""
        return (f"start={start.start.value}", f"program={start.program}")

    def fitted(self, start: Startup, session: Session) -> Startup:
        """With its longest phases, its program, and imports as its cause where these took most of it.
        ValueError: a depth is less than 0."""
        refuse_negative(depth=(phase.depth for phase in start.phases))
        start = replace(_shortened(start), program=session.name[:_PROGRAM_MAX])
        imports = sum(phase.self_ns for phase in start.phases if phase.kind is PhaseKind.IMPORT)
        if start.cause is Cause.UNKNOWN and imports * 2 >= start.duration_ns > 0:
            start = replace(start, cause=Cause.IMPORT)
        return start


def _reached_words(milestone: Milestone) -> str:
    """`port listening after 1.20 s`."""
    name = _REACHED.get(milestone.kind, milestone.kind.value)
    return f"{name} after {format_duration(milestone.offset_ns)}"


def _imports_words(start: Startup) -> str | None:
    """`213 modules, 40 of them compiled; 5.4 MB read`; None: none was seen."""
    if not start.imports:
        return None
    compiled = f", {start.compiled:,} of them compiled" if start.compiled else ""
    faults = f"; {count_of(start.major_faults, 'major fault')}" if start.major_faults else ""
    return f"{count_of(start.imports, 'module')}{compiled}; {format_size(start.bytes_read)} read{faults}"


def _loaded_words(phase: Phase) -> str:
    """`compiled, 34.0 kB read, 3 major faults`; empty: there is nothing out of the ordinary."""
    found = [phase.origin.value] if phase.origin is CodeOrigin.COMPILED else []
    found += [count_of(phase.major_faults, "major fault")] if phase.major_faults else []
    found += ["not over"] if phase.open else []
    return ", ".join(found)


def _bar(phase: Phase, whole_ns: int) -> str:
    """When it was in the start, as `....====........`."""
    if whole_ns <= 0:
        return ""
    begin = min(max(phase.offset_ns * _BAR // whole_ns, 0), _BAR - 1)
    end = min(max(-(-(phase.offset_ns + phase.duration_ns) * _BAR // whole_ns), begin + 1), _BAR)
    return "." * begin + "=" * (end - begin) + "." * (_BAR - end)


def _shortened(start: Startup) -> Startup:
    """The start with its longest phases; those that had not ended come first."""
    phases = start.phases
    kept = heaviest(
        phases,
        PHASES_MAX,
        depth=lambda phase: phase.depth,
        weight=lambda phase: phase.duration_ns + (_LONGEST_NS if phase.open else 0),
    )
    left_out = start.left_out + len(phases) - len(kept)
    return replace(start, phases=tuple(phases[index] for index in kept), left_out=left_out)
