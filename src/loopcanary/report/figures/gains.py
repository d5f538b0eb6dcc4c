"""The gain from the end of a bug, for the loops that it was seen on, in figures and in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Cause, Culprit, LoopHealth, Session, Stall
from loopcanary.model.search import IssueMark, IssueQuery, of_type
from loopcanary.model.units import format_duration
from loopcanary.protocols.stores import IssueStore
from loopcanary.words.text import printable

Delay = Callable[[Sequence[tuple[int, int]]], int | None]
"""From stalls, each as its length and the part that ends (ns), to the p99 of waiting; None: unknown."""
Delays = Callable[[Sequence[LoopHealth]], Delay]
"""Makes that function for loops that are taken as one; assembly has it from the diagnosis."""


class LoopKey(NamedTuple):
    """Names a loop over any number of sessions."""

    program: str
    thread: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopGain:
    loop: LoopKey
    p99_ns: int
    p99_without_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    loops: tuple[LoopGain, ...] = ()
    """The loops on which it was seen, most gain first; empty where their figures are not known."""
    waiting_ns: int | None = None
    """The sum of the times that other callbacks waited during its stalls, estimated by `Loops`."""
    ended_ns: int = 0
    """The stalled time that would end, on loops with a known waiting time."""


class Loops:
    """The loops of sessions; those of one program, thread and kind are one.

    Nobody counts how many callbacks wait in a stall. But a loop's queue delays are summed, and callbacks wait
    only while the loop is busy, so their mean number is the quotient of both (Little, Operations Research 9,
    1961, 383). The waiting that a bug caused is its stalled time x that mean number. This is an estimate on
    the low side: queue delay is a lower bound, and it leaves out what arrives at sockets during a stall.
    """

    def __init__(self, sessions: Iterable[Session], delays: Delays | None) -> None:
        self._delays = delays
        self._healths: dict[LoopKey, list[LoopHealth]] = defaultdict(list)
        self._keys: dict[tuple[str, str, str], LoopKey] = {}
        self._only: dict[str, LoopKey] = {}
        self._known: dict[LoopKey, tuple[Delay, int | None]] = {}
        for session in sessions:
            keys = [self._add(session, loop) for loop in session.loops if loop.turns]
            if len(set(keys)) == 1:
                self._only[session.id] = keys[0]

    def _add(self, session: Session, loop: LoopHealth) -> LoopKey:
        key = LoopKey(session.name, loop.thread, loop.kind)
        self._healths[key].append(loop)
        self._keys[session.id, loop.thread, loop.kind] = key
        return key

    def gains(self, marks: Iterable[IssueMark], share: float) -> Gains:
        """What the end of a bug would bring. `marks` are its stalls, `share` the part of them that ends; 0:
        nothing is promised."""
        if not share:
            return Gains()
        cuts: dict[LoopKey, list[tuple[int, int]]] = defaultdict(list)
        for mark in marks:
            if (key := self._loop_of(mark)) is not None:
                cuts[key].append((mark.duration_ns, round(mark.duration_ns * share)))
        ends = {key: sum(taken for _, taken in found) for key, found in cuts.items()}
        waits = {key: self._waiting(key, ended_ns) for key, ended_ns in ends.items()}
        known = {key: wait for key, wait in waits.items() if wait is not None}
        return Gains(
            loops=self._loop_gains(cuts),
            waiting_ns=sum(known.values()) if known else None,
            ended_ns=sum(ends[key] for key in known),
        )

    def _loop_of(self, mark: IssueMark) -> LoopKey | None:
        if not mark.thread:
            return self._only.get(mark.session)
        return self._keys.get((mark.session, mark.thread, mark.loop))

    def _loop_gains(self, cuts: dict[LoopKey, list[tuple[int, int]]]) -> tuple[LoopGain, ...]:
        gains = [self._loop_gain(key, found) for key, found in cuts.items()]
        known = [gain for gain in gains if gain is not None]
        return tuple(sorted(known, key=lambda gain: (gain.p99_without_ns - gain.p99_ns, gain.loop)))

    def _loop_gain(self, key: LoopKey, cuts: list[tuple[int, int]]) -> LoopGain | None:
        if self._delays is None:
            return None
        if key not in self._known:
            delay = self._delays(self._healths[key])
            self._known[key] = delay, delay(())
        delay, whole = self._known[key]
        without = delay(cuts)
        if whole is None or without is None:
            return None
        return LoopGain(loop=key, p99_ns=whole, p99_without_ns=min(without, whole))

    def _waiting(self, key: LoopKey, ended_ns: int) -> int | None:
        healths = self._healths[key]
        waited = sum(loop.queue_mean_ns * loop.callbacks for loop in healths)
        busy = sum(loop.busy_ns for loop in healths)
        return round(ended_ns * waited / busy) if waited > 0 and busy > 0 else None


def names(keys: Iterable[LoopKey]) -> dict[LoopKey, str]:
    """Each loop's name for people, as short as it can be and differ from the others."""
    known = list(dict.fromkeys(keys))
    programs, threads = Counter(key.program for key in known), {key.thread for key in known}
    return {
        key: ", ".join(
            part
            for part, is_said in (
                (key.program, len(programs) > 1),
                (key.thread, len(threads) > 1 or len(programs) < len(known)),
                (f"({key.kind})", key.kind != "asyncio" and len(known) > 1),
            )
            if is_said
        )
        for key in known
    }


_EXAMINED = 20
"""The latest stalls of a bug stand for all of them."""
_OF_NO_ONE_LINE = frozenset({Cause.CPU, Cause.BURST, Cause.HOST, Cause.GC, Cause.UNKNOWN})


def own_share(source: IssueStore, query: IssueQuery, fingerprint: str) -> float:
    """The part of the time of a bug's latest stalls that its own line took, 0 to 1. 0 where a process ended
    in one of them: nobody knows how the process would have gone on."""
    found = of_type(Stall, source.issues(replace(query.stalls, fingerprint=fingerprint), _EXAMINED))
    if any(stall.state.is_of_process for stall in found):
        return 0.0
    whole_ns = sum(stall.duration_ns for stall in found)
    return sum(stall.duration_ns * own_part(stall) for stall in found) / whole_ns if whole_ns else 1.0


def own_part(stall: Stall) -> float:
    """The part of a stall that would end with its bug, 0 to 1. No change of code helps against the host."""
    if stall.cause is Cause.HOST:
        return 0.0
    if stall.blamed_holder is not None:
        holders = stall.holders or (stall.blamed_holder,)
        return min(1.0, sum(one.share for one in holders if _is_at(one.culprit, stall.blamed)))
    part = _part_of_portions(stall)
    # Code that computes goes from line to line; a call that blocks is one line's.
    return part if stall.cause in _OF_NO_ONE_LINE else min(part, _part_through_line(stall))


def _part_of_portions(stall: Stall) -> float:
    if not stall.portions:
        return stall.cause_share
    struck = [one.share for one in stall.portions if one.cause is stall.cause and one.culprit is None]
    own = struck or [one.share for one in stall.portions if _is_at(one.culprit, stall.culprit)]
    # A function that called those of all parts has the line of the largest.
    return min(1.0, sum(own)) if own else stall.portions[0].share


def _part_through_line(stall: Stall) -> float:
    """The part of the stacks' time in stacks with the culprit's line; 1 where no stack has it."""
    at = stall.culprit and (stall.culprit.file, stall.culprit.line)
    through = [
        stack.weight_ns
        for stack in stall.stacks
        if any((frame.file, frame.line) == at for frame in stack.frames)
    ]
    return sum(through) / sum(stack.weight_ns for stack in stall.stacks) if sum(through) else 1.0


def _is_at(culprit: Culprit | None, other: Culprit | None) -> bool:
    return (
        culprit is not None and other is not None and (culprit.file, culprit.line) == (other.file, other.line)
    )


_GAINS_MAX = 2
_LEAST_NS = 1_000_000
"""Smaller gains are below the precision of the estimate."""
_GAIN_LEAST = 0.05
"""A delay that changes by less is not worth a line."""


def gain_words(gains: Gains) -> Iterator[str]:
    """`p99 loop delay 412 ms -> 38 ms`, `at least 12 s less waiting for 40 other callbacks at a time`: what
    its end would bring. The waiting is estimated, and on the low side (docs/internals/report-schema.md)."""
    shown = names(gain.loop for gain in gains.loops)
    better = [
        gain
        for gain in gains.loops
        if gain.p99_ns >= _LEAST_NS and gain.p99_without_ns < (1 - _GAIN_LEAST) * gain.p99_ns
    ]
    for gain in better[:_GAINS_MAX]:
        on = f" of {printable(shown[gain.loop], 60)}" if shown[gain.loop] else ""
        without = format_duration(gain.p99_without_ns) if gain.p99_without_ns >= _LEAST_NS else "under 1 ms"
        yield f"p99 loop delay{on} {format_duration(gain.p99_ns)} -> {without}"
    if gains.waiting_ns is not None and gains.waiting_ns >= _LEAST_NS:
        at_a_time = round(gains.waiting_ns / gains.ended_ns) if gains.ended_ns else 0
        # Their sum may be a multiple of the run's length, which is not believable.
        if at_a_time > 1:
            less, others = gains.ended_ns, f"{at_a_time:,} other callbacks at a time"
        else:
            less, others = gains.waiting_ns, "other callbacks"
        yield f"at least {format_duration(less)} less waiting for {others}"
