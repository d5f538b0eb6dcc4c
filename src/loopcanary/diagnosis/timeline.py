"""The samples of a stall in order: which stack, what the thread did, who kept it from going on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from loopcanary.diagnosis.code.stack_frames import PlacedStack, ShownStack
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.diagnosis.samples.weights import SampleWeights
from loopcanary.model import (
    Activity,
    Collection,
    Doing,
    EarlierWork,
    LongWork,
    Pause,
    Span,
    StackFrame,
    StallEvidence,
    StallScope,
    Timeline,
)

SPANS_MAX = 256
PAUSES_MAX = 64
EARLIER_PAUSES_MAX = 16
"""Those before a stall; they stand again in each stall that follows soon."""
EARLIER_MAX = 32
"""As with pauses: the history of one stall is also in that of the next."""
EARLIER_NS = 10_000_000_000
"""How far back collections and long work before a stall are of interest."""
_HOLDER_STACKS_MAX = 16
"""Different stacks of holders that are kept, those that held longest: each may be as large as one of the
thread's own."""
_STOPPED = ("T", "t")
_RUNNING_SHARE = 0.5
"""A thread that is ready all the time and on a CPU for less than this share was kept waiting."""


def make_timeline(
    observation: Observation, weights: SampleWeights, numbers: Mapping[ShownStack, int]
) -> Timeline:
    """The timeline of a stall. `observation`: of all samples; `weights`: theirs, in the same order;
    `numbers`: which of the stall's stacks a stack is."""
    evidence, seen = observation.evidence, observation.seen
    spans = _spans(observation, weights, numbers)
    thinned = len(spans) > SPANS_MAX
    while len(spans) > SPANS_MAX:
        spans = _halved(spans)
    first_ns = min(max(0, seen[0].sample.at_ns - evidence.begin_ns), weights.duration_ns) if seen else 0
    turn_ago_ns, turn_callbacks = _turn(evidence)
    earlier = _earlier(evidence.earlier, evidence.begin_ns)
    return Timeline(
        spans=tuple(spans),
        seen_from_ns=first_ns,
        seen_until_ns=first_ns + weights.covered_ns,
        pauses=_pauses(observation, weights.duration_ns),
        thinned=thinned,
        earlier=earlier,
        earlier_last=evidence.earlier_last,
        threads_at_ns=min(
            (max(0, thread.at_ns - evidence.begin_ns) for thread in evidence.threads), default=None
        ),
        turn_ago_ns=turn_ago_ns,
        turn_callbacks=turn_callbacks,
        earlier_from_ns=_reach_ns(evidence, earlier),
    )


def _spans(observation: Observation, weights: SampleWeights, numbers: Mapping[ShownStack, int]) -> list[Span]:
    """Neighbours with the same stack and activity as one."""
    activities = _Activities(observation, weights)
    spans: list[Span] = []
    offset_ns = begin_ns = samples = 0
    stack: int | None = None
    activity: Activity | None = None  # none yet

    def end() -> None:
        if activity is not None:
            spans.append(
                Span(
                    offset_ns=begin_ns,
                    length_ns=offset_ns - begin_ns,
                    samples=samples,
                    stack=stack,
                    activity=activity,
                )
            )

    for entry, length_ns in zip(observation.seen, weights.weights_ns, strict=True):
        its_stack = numbers.get(entry.view.stack.shown)
        its_activity = activities.of(entry)
        if its_activity is activity and its_stack == stack:
            samples += 1
        elif length_ns > 0:
            end()
            begin_ns, samples, stack, activity = offset_ns, 1, its_stack, its_activity
        offset_ns += length_ns
    end()
    return spans


def _turn(evidence: StallEvidence) -> tuple[int | None, int]:
    """The part of the turn before the stalled callback: its length, and the number of its callbacks."""
    if evidence.scope is not StallScope.CALLBACK or evidence.turn_begin_ns is None:
        return None, 0
    over = evidence.turn_callbacks - (evidence.end_ns is not None)  # itself, once it is over
    return max(0, evidence.begin_ns - evidence.turn_begin_ns), max(0, over)


def _halved(spans: list[Span]) -> list[Span]:
    """Each two neighbours as one, which shows what the longer of them did."""
    pairs = [spans[index : index + 2] for index in range(0, len(spans), 2)]
    return [
        replace(
            max(pair, key=lambda span: span.length_ns),
            offset_ns=pair[0].offset_ns,
            length_ns=sum(span.length_ns for span in pair),
            samples=sum(span.samples for span in pair),
        )
        for pair in pairs
    ]


class _Activities:
    """What the thread did at each sample, the same object for the same."""

    def __init__(self, observation: Observation, weights: SampleWeights) -> None:
        self._observation = observation
        self._known: dict[tuple[object, ...], Activity] = {}
        self._by_kind: dict[tuple[int, bool, int | None, int | None], Activity] = {}
        held: Counter[PlacedStack] = Counter()
        for seen, weight_ns in zip(observation.seen, weights.weights_ns, strict=True):
            if seen.sample.holder_stack is not None:
                held[observation.place(seen.sample.holder_stack)] += weight_ns
        self._kept = {stack for stack, _ in held.most_common(_HOLDER_STACKS_MAX)}

    def _holder_stack(self, seen: WeighedSample) -> PlacedStack | None:
        stack = seen.sample.holder_stack
        return None if stack is None else self._observation.place(stack)

    def of(self, seen: WeighedSample) -> Activity:
        sample, share = seen.sample, seen.cpu_share
        key = (
            seen.view.kind,
            share is not None and share < _RUNNING_SHARE,
            sample.holder_tid,
            None if sample.holder_stack is None else id(sample.holder_stack),
        )
        known = self._by_kind.get(key)
        if known is None:
            known = self._by_kind[key] = self._found(seen)
        return known

    def _found(self, seen: WeighedSample) -> Activity:
        sample, doing, holder = seen.sample, doing_of(seen), self._holder_stack(seen)
        blocked = doing in (Doing.BLOCKED, Doing.UNKNOWN)
        key = (
            # Members of an enum by identity: they hash by calling Python.
            id(doing),
            id(sample.gil),
            seen.state,
            seen.syscall if blocked else None,
            sample.target if blocked else None,
            sample.lock,
            sample.holder_tid,
            holder if holder in self._kept else None,
        )
        known = self._known.get(key)
        if known is None:
            tid = sample.holder_tid
            known = self._known[key] = Activity(
                doing=doing,
                state=seen.state,
                syscall=seen.syscall if blocked else None,
                waited_on=sample.target if blocked else None,
                lock=None if sample.lock is None else sample.lock.kind,
                gil=sample.gil,
                holder=None if tid is None else self._observation.threads.get(tid) or f"thread {tid}",
                holder_frames=_frames(holder) if holder in self._kept else (),
            )
        return known


def _frames(stack: PlacedStack | None) -> tuple[StackFrame, ...]:
    return () if stack is None else stack.shown.frames


def doing_of(seen: WeighedSample) -> Doing:
    """What a thread did when a sample was taken, in one word."""
    sample = seen.sample
    if sample.in_gc:
        return Doing.GC
    if sample.waits_for_gil:
        return Doing.GIL_WAIT
    if seen.state in _STOPPED:
        return Doing.STOPPED
    if seen.on_cpu is None:
        return Doing.UNKNOWN
    if not seen.on_cpu:
        return Doing.BLOCKED
    return Doing.READY if _kept_waiting(seen) else Doing.ON_CPU


def _kept_waiting(seen: WeighedSample) -> bool:
    return seen.cpu_share is not None and seen.cpu_share < _RUNNING_SHARE


def _pauses(observation: Observation, duration_ns: int) -> tuple[Pause, ...]:
    evidence = observation.evidence
    since_ns = evidence.begin_ns - EARLIER_NS
    before = [one for one in evidence.earlier_collections if one.end_ns > since_ns]
    inside = [one for one in evidence.collections if one.begin_ns < evidence.begin_ns + duration_ns]
    longest = [*_longest(before, EARLIER_PAUSES_MAX), *_longest(inside, PAUSES_MAX)]
    return tuple(
        Pause(
            offset_ns=one.begin_ns - evidence.begin_ns,
            length_ns=_length_ns(one),
            generation=one.generation,
            collected=one.collected,
            thread=observation.threads.get(one.tid) or f"thread {one.tid}",
            own=one.tid == evidence.tid,
        )
        for one in sorted(longest, key=lambda one: one.begin_ns)
    )


def _longest(collections: list[Collection], count: int) -> list[Collection]:
    return sorted(collections, key=_length_ns, reverse=True)[:count]


def _length_ns(one: Collection) -> int:
    return max(0, one.end_ns - one.begin_ns)


def _earlier(earlier: Iterable[LongWork], begin_ns: int) -> tuple[EarlierWork, ...]:
    near = [
        work
        for work in earlier
        if work.begin_ns <= work.end_ns <= begin_ns and work.end_ns > begin_ns - EARLIER_NS
    ]
    return tuple(
        EarlierWork(
            kind=work.kind,
            name=work.name,
            task=work.task,
            ago_ns=begin_ns - work.begin_ns,
            length_ns=work.end_ns - work.begin_ns,
            callbacks=work.callbacks,
            longest_ns=work.longest_ns,
            short=work.short,
        )
        for work in near[-EARLIER_MAX:]
    )


def _reach_ns(evidence: StallEvidence, earlier: tuple[EarlierWork, ...]) -> int | None:
    """How far back the record is complete."""
    if evidence.earlier_from_ns is None:
        return None
    reach_ns = min(max(0, evidence.begin_ns - evidence.earlier_from_ns), EARLIER_NS)
    return min(reach_ns, earlier[0].ago_ns) if len(earlier) == EARLIER_MAX else reach_ns
