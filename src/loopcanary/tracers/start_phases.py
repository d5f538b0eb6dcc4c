"""A start, made of what was noted of it (model.issues.start_notes)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from loopcanary.model import Clock, Milestone, Phase, PhaseKind, StartKind, Startup
from loopcanary.model.calls import parents
from loopcanary.model.issues.startup import CodeOrigin, NotedImport, StartNotes

_COLD_SHARE = 10
"""A start is cold if one of this many imports was compiled,"""
_COLD_FAULTS = 50
"""or if the process waited this often for the disk."""
_OWN = "loopcanary"


def start_of(
    notes: StartNotes,
    clock: Clock,
    *,
    turn_ns: int | None,
    last_ns: int,
    cold_ns: int,
    warm_ns: int,
) -> Startup:
    """The start.

    Args:
        notes: what was noted.
        clock: of the process.
        turn_ns: the first turn of a loop of its main thread; None: it has had none.
        last_ns: when the process was seen to live last: a start that is not over ends there.
        cold_ns: a cold start may take this long.
        warm_ns: a warm one.
    """
    begin_ns = notes.run_ns or notes.process_ns
    end_ns = max(notes.end_ns or max(last_ns, notes.last_ns), notes.watched_ns)
    stages = _stages(notes, turn_ns, begin_ns, end_ns)
    phases = _with_own_times([*_nested(notes, stages, end_ns)])
    kind = _kind_of(notes)
    return Startup(
        began_wall_ns=clock.to_wall_ns(begin_ns),
        duration_ns=end_ns - begin_ns,
        threshold_ns=0 if notes.is_short else cold_ns if kind is StartKind.COLD else warm_ns,
        start=kind,
        phases=tuple(replace(one, offset_ns=one.offset_ns - begin_ns) for one in phases),
        left_out=notes.left_out,
        milestones=_milestones(notes, turn_ns, begin_ns),
        run_ns=max(0, notes.run_ns - notes.process_ns) if notes.run_ns else 0,
        step_ns=0 if notes.run_ns else notes.step_ns,
        imports=len(notes.imports) + notes.left_out,
        compiled=sum(one.origin is CodeOrigin.COMPILED for one in notes.imports),
        bytes_read=sum(one.bytes_read for one in notes.imports),
        major_faults=notes.major_faults,
        cut=notes.end_ns is None,
        advice=_advice(phases, notes),
    )


def _kind_of(notes: StartNotes) -> StartKind:
    if notes.is_short and notes.major_faults < _COLD_FAULTS:
        return StartKind.UNKNOWN
    compiled = sum(one.origin is CodeOrigin.COMPILED for one in notes.imports)
    loaded = sum(one.origin is not CodeOrigin.OTHER for one in notes.imports)
    is_compiled = compiled > 0 and compiled * _COLD_SHARE >= loaded
    return StartKind.COLD if is_compiled or notes.major_faults >= _COLD_FAULTS else StartKind.WARM


# ---- phases; their offsets are monotonic until they are all there ----------------------------------


def _stages(notes: StartNotes, turn_ns: int | None, begin_ns: int, end_ns: int) -> list[Phase]:
    """One behind the other, from the begin to the end."""
    main_ns = notes.main_ns or notes.site_over_ns
    borders = [
        (PhaseKind.INTERPRETER if notes.hook_ns else PhaseKind.OTHER, notes.hook_ns or notes.watched_ns),
        *([(PhaseKind.SITE, main_ns or notes.watched_ns)] if notes.hook_ns else []),
        *(
            (kind, ns)
            for kind, ns in ((PhaseKind.READY, notes.ready_ns), (PhaseKind.TURN, turn_ns))
            if ns is not None and not _is_inside(ns, notes.imports)
        ),
        (_last_stage(notes), end_ns),
    ]
    found: list[Phase] = []
    at_ns = begin_ns
    for kind, until_ns in sorted(borders, key=lambda border: border[1]):
        if until_ns > end_ns:
            break
        if until_ns > at_ns:
            found.append(_phase(kind, at_ns, until_ns))
            at_ns = until_ns
    if notes.end_ns is None and found:
        found[-1] = replace(found[-1], open=True)
    return found


def _last_stage(notes: StartNotes) -> PhaseKind:
    match notes.end_ns:
        case notes.listening_ns if notes.listening_ns is not None:
            return PhaseKind.LISTENING
        case notes.frame_ns if notes.frame_ns is not None:
            return PhaseKind.FRAME
        case notes.idle_ns if notes.idle_ns is not None:
            return PhaseKind.IDLE
    return PhaseKind.MAIN


def _is_inside(ns: int, imports: Iterable[NotedImport]) -> bool:
    """Whether an import went on then: no stage ends in the middle of one."""
    return any(one.begin_ns < ns and (one.end_ns is None or ns < one.end_ns) for one in imports)


def _phase(kind: PhaseKind, from_ns: int, until_ns: int, name: str = "", depth: int = 0) -> Phase:
    took_ns = max(0, until_ns - from_ns)
    return Phase(kind=kind, name=name, depth=depth, offset_ns=from_ns, duration_ns=took_ns, self_ns=took_ns)


def _nested(notes: StartNotes, stages: Sequence[Phase], end_ns: int) -> Iterable[Phase]:
    """Each stage, and what was imported in it."""
    waiting = [one for one in notes.imports if one.begin_ns <= end_ns]
    for stage in stages:
        until_ns = stage.offset_ns + stage.duration_ns
        yield stage
        if stage.kind is PhaseKind.SITE and notes.hook_ns:
            ours = [*takewhile(lambda one: one.depth or one.name.partition(".")[0] == _OWN, waiting)]
            waiting = waiting[len(ours) :]
            own_ns = max([notes.watched_ns, *(one.end_ns or end_ns for one in ours)])
            yield _phase(PhaseKind.OTHER, notes.hook_ns, own_ns, _OWN, 1)
            yield from (_import(one, end_ns, 2) for one in ours)
        while waiting and waiting[0].begin_ns < until_ns:
            yield _import(waiting.pop(0), end_ns, 1)
    yield from (_import(one, end_ns, 1) for one in waiting)


def _import(one: NotedImport, end_ns: int, depth: int) -> Phase:
    until_ns = min(one.end_ns or end_ns, end_ns)
    return replace(
        _phase(PhaseKind.IMPORT, one.begin_ns, until_ns, one.name, one.depth + depth),
        origin=one.origin,
        bytes_read=one.bytes_read,
        major_faults=one.major_faults,
        open=one.end_ns is None,
    )


def _with_own_times(phases: list[Phase]) -> list[Phase]:
    inside = [0] * len(phases)
    for index, above in enumerate(parents([phase.depth for phase in phases])):
        if above is not None:
            inside[above] += phases[index].duration_ns
    return [
        replace(phase, self_ns=max(0, phase.duration_ns - inner_ns))
        for phase, inner_ns in zip(phases, inside, strict=True)
    ]


def _milestones(notes: StartNotes, turn_ns: int | None, begin_ns: int) -> tuple[Milestone, ...]:
    moments = (
        (PhaseKind.INTERPRETER, notes.hook_ns),
        (PhaseKind.SITE, notes.main_ns or notes.site_over_ns),
        (PhaseKind.READY, notes.ready_ns),
        (PhaseKind.TURN, turn_ns),
        (PhaseKind.LISTENING, notes.listening_ns),
        (PhaseKind.IDLE, notes.idle_ns),
        (PhaseKind.ANSWER, notes.answered_ns),
        (PhaseKind.FRAME, notes.frame_ns),
        (PhaseKind.MAIN, notes.over_ns),
    )
    found = [Milestone(kind=kind, offset_ns=max(0, ns - begin_ns)) for kind, ns in moments if ns is not None]
    return tuple(sorted(found, key=lambda one: one.offset_ns))


# ---- what helps --------------------------------------------------------------------------------------


_ADVICE_SHARE = 5
"""An import that takes less than one of so many parts of the start is not worth a word."""
_GC_SHARE = 10
"""The same of garbage collections."""
_FROZEN_SHARE = 2
"""And of the interpreter's start, of which frozen modules save a tenth (measured on 3.11 to 3.13)."""


def _may_wait(phase: Phase) -> bool:
    """Whether the program can do without the module for a while: others import the standard library's."""
    return phase.name.partition(".")[0] not in sys.stdlib_module_names


def _advice(phases: Sequence[Phase], notes: StartNotes) -> str | None:
    """What would make it shorter."""
    total_ns = sum(phase.duration_ns for phase in phases if phase.depth == 0)
    found = [*_import_advice(phases, notes, total_ns), *_python_advice(phases, notes, total_ns)]
    return "; ".join(found) or None


def _import_advice(phases: Sequence[Phase], notes: StartNotes, total_ns: int) -> Iterator[str]:
    heaviest = max(
        (
            phase
            for phase in phases
            if phase.kind is PhaseKind.IMPORT and phase.depth == 1 and _may_wait(phase)
        ),
        key=lambda phase: phase.duration_ns,
        default=None,
    )
    if heaviest is not None and heaviest.duration_ns * _ADVICE_SHARE >= total_ns > 0:
        yield (
            f"import {heaviest.name} took {100 * heaviest.duration_ns // total_ns} % of the start: import it "
            "in the function that needs it"
        )
    compiled = sum(one.origin is CodeOrigin.COMPILED for one in notes.imports)
    if compiled * _COLD_SHARE >= len(notes.imports) > 0:
        yield (
            f"{compiled} modules were compiled: run `python -m compileall` when you install or build the "
            "image, and keep the folders of .pyc files writable or filled"
        )


def _python_advice(phases: Sequence[Phase], notes: StartNotes, total_ns: int) -> Iterator[str]:
    if notes.gc_ns * _GC_SHARE >= total_ns > 0:
        yield (
            f"{notes.collections} garbage collections took {100 * notes.gc_ns // total_ns} % of the start: "
            "call `gc.disable()` first, and `gc.freeze()` and `gc.enable()` when it is over: later "
            "collections do not look through what it loaded"
        )
    interpreter_ns = sum(phase.duration_ns for phase in phases if phase.kind is PhaseKind.INTERPRETER)
    if notes.is_unfrozen and interpreter_ns * _FROZEN_SHARE >= total_ns > 0:
        yield (
            f"the interpreter's start took {100 * interpreter_ns // total_ns} % of it, and read Python's own "
            "modules from files: `-X frozen_modules=on` saves about a tenth of that"
        )
