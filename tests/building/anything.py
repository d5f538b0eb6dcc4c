"""Any value there can be, by hypothesis: values of the model, and evidence that fits a slot."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from tests.building.evidence import BEGIN, MS, stall
from tests.building.stalls import HOSTILE, S

from loopcanary.model import (
    Activity,
    Blocker,
    CallbackNames,
    CallRow,
    Cause,
    CodeOrigin,
    Contributor,
    Culprit,
    Doing,
    EarlierWork,
    FindingRule,
    FoundAt,
    Frame,
    FrameFigures,
    FrameSlice,
    GilState,
    Grade,
    Handled,
    Holder,
    HostReading,
    IdleFigures,
    InputFigures,
    KernelView,
    KilledBy,
    LateFrame,
    Ledger,
    LockProof,
    LockView,
    LoopHealth,
    Milestone,
    Pause,
    Phase,
    PhaseKind,
    Portion,
    PriorityChange,
    Sample,
    SceneFrames,
    Scheduler,
    SessionEnd,
    Severity,
    ShortWork,
    Span,
    Stack,
    StackFrame,
    Stall,
    StallEvidence,
    StallScope,
    StallState,
    StartKind,
    StateWord,
    Surroundings,
    Target,
    TargetKind,
    ThreadReading,
    ThreadStack,
    ThreadView,
    ThreadWait,
    Timeline,
    TracedCall,
    TracedCalls,
    TracedWork,
    TraceFigures,
    WeightedStack,
    WorkKind,
)
from loopcanary.model.session import TaskSurvey, WaitingTasks

# ---- values of the model ----------------------------------------------------------------------

_EXACT_NS = st.integers(0, 2**51)
_WALL_NS = st.integers(-62_135_596_800 * S, 253_402_300_800 * S - 1)
_RATIOS = st.floats(0, 1)
_TEXTS = st.one_of(st.text(max_size=20), st.sampled_from(HOSTILE[:7]))
_COUNTS = st.integers(0, 2**63)
_NAMED = {
    "int": _COUNTS,
    "str": _TEXTS,
    "bool": st.booleans(),
    "float": _RATIOS,
    "str | None": st.none() | _TEXTS,
    "int | None": st.none() | _COUNTS,
    "float | None": st.none() | _RATIOS,
    "tuple[str, ...]": st.lists(_TEXTS, max_size=3).map(tuple),
    "tuple[tuple[int, int], ...]": st.lists(st.tuples(_EXACT_NS, _COUNTS), max_size=3).map(tuple),
    "tuple[int, ...]": st.tuples(*[_COUNTS] * 5),
    "dict[str, str]": st.dictionaries(_TEXTS, _TEXTS, max_size=3),
    "dict[str, int]": st.dictionaries(_TEXTS, _COUNTS, max_size=3),
    "StallScope": st.sampled_from(StallScope),
    "StallState": st.sampled_from(StallState),
    "Severity": st.sampled_from(Severity),
    "Cause": st.sampled_from(Cause),
    "SessionEnd": st.sampled_from(SessionEnd),
    "Grade": st.sampled_from(Grade),
    "Cause | None": st.none() | st.sampled_from(Cause),
    "StateWord | None": st.none() | st.sampled_from(StateWord),
    "LockProof | None": st.none() | st.sampled_from(LockProof),
    "TargetKind": st.sampled_from(TargetKind),
    "GilState": st.sampled_from(GilState),
    "Doing": st.sampled_from(Doing),
    "WorkKind": st.sampled_from(WorkKind),
    "CodeOrigin": st.sampled_from(CodeOrigin),
    "StartKind": st.sampled_from(StartKind),
    "PhaseKind": st.sampled_from(PhaseKind),
    "FindingRule": st.sampled_from(FindingRule),
}
_TYPES = {
    kind.__name__: kind
    for kind in (
        *(Blocker, Contributor, Culprit, Holder, KilledBy, Ledger, LoopHealth, Portion, Scheduler),
        *(PriorityChange, StackFrame, Surroundings, Target, ThreadView, WeightedStack),
        *(FrameFigures, FrameSlice, SceneFrames, InputFigures, IdleFigures, TraceFigures),
        *(FoundAt, Handled, LateFrame, CallRow, Milestone, Phase, TracedCall, TracedCalls, TracedWork),
        *(Activity, EarlierWork, Pause, ShortWork, Span, TaskSurvey, Timeline, WaitingTasks),
    )
}


def any_of(kind: type) -> st.SearchStrategy[Any]:
    """Values of a model type, with all its fields: a field that the wire form forgets cannot hide."""
    fields = dataclasses.fields(kind)
    built = st.builds(kind, **{field.name: _any_field(field.name, str(field.type)) for field in fields})
    return built.map(_with_own_stacks) if kind is Stall else built


def _with_own_stacks(one: Stall) -> Stall:
    """Spans name stacks of their stall, none that it does not have."""
    if one.timeline is None:
        return one
    count = len(one.stacks)
    spans = [
        replace(span, stack=span.stack % count if span.stack is not None and count else None)
        for span in one.timeline.spans
    ]
    return replace(one, timeline=replace(one.timeline, spans=tuple(spans)))


def _any_field(name: str, annotation: str) -> st.SearchStrategy[Any]:
    optional = annotation.endswith(" | None")
    base = annotation.removesuffix(" | None")
    if name.endswith("_ns"):
        times = _WALL_NS if name.endswith("_wall_ns") else _EXACT_NS
        return st.none() | times if optional else times
    if name == "refresh_mhz":
        return st.integers(1, 10**9)
    if base in _TYPES:
        return st.none() | any_of(_TYPES[base]) if optional else any_of(_TYPES[base])
    inner = base.removeprefix("tuple[").removesuffix(", ...]")
    if inner in _TYPES:
        return st.lists(any_of(_TYPES[inner]), max_size=2).map(tuple)
    return _NAMED[annotation]


# ---- evidence --------------------------------------------------------------------------------

LARGEST = (1 << 63) - 1
word = st.integers(0, LARGEST)
half = st.integers(0, (1 << 32) - 1)
quarter = st.integers(0, (1 << 16) - 1)
text = st.text(max_size=40).filter(lambda text: text != "")
letter = st.sampled_from(["", "R", "S", "D", "T", "t", "Z"])


def padded_text(room: int) -> st.SearchStrategy[str]:
    """What a NUL-padded field can hold."""
    return st.text(max_size=room // 4).filter(lambda text: "\0" not in text)


frames = st.builds(
    Frame,
    qualname=text,
    file=text,
    line=half,
    end_line=half,
    column=quarter,
    end_column=quarter,
    first_line=half,
    code_flags=half,
)
stacks = st.builds(Stack, frames=st.lists(frames, max_size=8).map(tuple), truncated=st.booleans())
kernels = st.builds(
    KernelView,
    on_cpu_ns=word,
    run_queue_ns=word,
    voluntary_switches=word,
    involuntary_switches=word,
    major_faults=word,
    thread_state=letter,
    syscall=st.none() | st.integers(0, 500),
    syscall_args=st.tuples(*[st.integers(0, (1 << 64) - 1)] * 3),
)
targets = st.builds(
    Target,
    kind=st.sampled_from(TargetKind),
    name=st.just("") | text,
    pid=st.none() | st.integers(1, (1 << 32) - 1),
)
locks = st.builds(
    LockView,
    kind=st.sampled_from(["lock", "RLock", "thread", "import lock"]),
    proof=st.sampled_from(LockProof),
)
module_locks = st.builds(
    LockView, kind=st.just("import lock of numpy.linalg"), proof=st.sampled_from(LockProof)
)
waits = st.one_of(
    st.just({}),
    st.builds(lambda target: {"target": target}, targets),
    st.builds(lambda lock: {"lock": lock}, locks | module_locks),
)
working_samples = st.builds(
    Sample,
    at_ns=st.integers(BEGIN, BEGIN + 250 * MS),
    stack=st.none() | stacks,
    kernel=st.none() | kernels,
    gil=st.sampled_from(GilState),
    waits_for_gil=st.booleans(),
    in_gc=st.booleans(),
    in_circle=st.booleans(),
    holder_tid=st.none() | st.integers(1, (1 << 32) - 1),
    holder_stack=st.none() | stacks,
    gc_total_ns=word,
)
samples = st.builds(lambda sample, wait: replace(sample, **wait), working_samples, waits)
circles = st.lists(
    st.builds(
        ThreadWait,
        tid=st.integers(1, (1 << 32) - 1),
        lock=locks | module_locks,
        holder_tid=st.integers(1, (1 << 32) - 1),
        stack=st.none() | stacks,
        has_timeout=st.booleans(),
    ),
    max_size=4,
).map(tuple)
threads = st.builds(
    ThreadStack,
    tid=st.integers(100, (1 << 63) - 1),
    at_ns=word,
    stack=st.none() | stacks,
    thread_state=letter,
    holds_gil=st.booleans(),
    waits_for_gil=st.booleans(),
)

readings = st.builds(
    ThreadReading,
    at_ns=st.integers(1, BEGIN),
    kernel=st.builds(KernelView, on_cpu_ns=word, run_queue_ns=word),
)


@st.composite
def _contributors(draw: st.DrawFn) -> Contributor:
    count = draw(st.integers(1, 1 << 40))
    site = draw(st.none() | st.builds(Scheduler, file=text, line=word, count=st.just(count)))
    return Contributor(
        name=draw(text),
        count=count,
        total_ns=draw(word),
        longest_ns=draw(word),
        scheduled=() if site is None else (site,),
    )


contributors = _contributors()


@st.composite
def hosts(draw: st.DrawFn) -> HostReading:
    """Any reading of the host: what is told together is told together."""
    told: dict[str, int] = {}
    for names in (
        ("process_cpu_ns",),
        ("process_major_faults",),
        ("system_busy_ns", "system_total_ns", "system_stolen_ns"),
        ("throttled_ns", "throttled_periods"),
        ("pressure_cpu_ns",),
        ("pressure_io_ns",),
        ("pressure_memory_ns",),
        ("memory_available_bytes",),
        ("memory_used_bytes",),
    ):
        if draw(st.booleans()):
            told |= {name: draw(word) for name in names}
    if draw(st.booleans()):
        told |= {
            "nice": draw(st.integers(-20, 19)),
            "policy": draw(st.integers(0, 7)),
            "cores": draw(st.integers(0, 1024)),
        }
    return HostReading(at_ns=draw(st.integers(BEGIN, BEGIN + 300 * MS)), **told)


@st.composite
def any_evidence(draw: st.DrawFn) -> StallEvidence:
    """Any stall that a slot holds, over or not."""
    taken = draw(st.lists(samples, max_size=10, unique_by=lambda sample: sample.at_ns))
    reasons = ("moved", "unreadable", "full")
    counts = draw(st.tuples(*[st.integers(0, 9)] * len(reasons)))
    end_ns = draw(st.none() | st.just(BEGIN + 250 * MS))
    scope = draw(st.sampled_from((StallScope.CALLBACK, StallScope.TURN)))
    tally = draw(st.lists(contributors, max_size=6, unique_by=lambda one: one.name))
    is_turn = scope is StallScope.TURN
    return stall(
        serial=draw(word),
        scope=scope,
        before=draw(st.none() | readings),
        host=tuple(
            sorted(
                draw(st.lists(hosts(), max_size=5, unique_by=lambda one: one.at_ns)),
                key=lambda one: one.at_ns,
            )
        ),
        contributors=tuple(sorted(tally, key=lambda one: (-one.total_ns, one.name))) if is_turn else (),
        contributors_from_ns=draw(st.none() | st.integers(1, LARGEST)) if is_turn else None,
        contributors_dropped=draw(word) if is_turn else 0,
        waiters=(waiters := tuple(draw(st.lists(word, max_size=8)))),
        waiter_count=len(waiters) if len(waiters) < 8 else draw(st.integers(8, LARGEST)),
        circle=draw(circles),
        tid=draw(st.integers(1, 99)),
        loop_kind=draw(padded_text(32)),
        thread_name=draw(padded_text(64)),
        end_ns=end_ns,
        last_look_ns=draw(st.integers(BEGIN + 250 * MS, BEGIN + 300 * MS)),
        names=draw(st.none() | st.builds(CallbackNames, name=text, task=st.none() | text)),
        scene=draw(st.none() | text),
        samples=tuple(sorted(taken, key=lambda sample: sample.at_ns)),
        sample_interval_ns=draw(word),
        samples_dropped=tuple((r, n) for r, n in zip(reasons, counts, strict=True) if n),
        threads=tuple(draw(st.lists(threads, max_size=4, unique_by=lambda one: one.tid))),
        turn_begin_ns=draw(st.none() | st.just(BEGIN)),
        turn_callbacks=draw(word),
        turn_callback_ns=draw(word),
        longest_callback_ns=draw(word),
        end_cpu_ns=draw(st.none() | st.integers(1, (1 << 63) - 1)) if end_ns else None,
        queue_ns=draw(word),
        allowance_ns=draw(word),
    )
