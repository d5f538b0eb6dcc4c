"""Loops over several sessions, and what their events would not have waited without one of the bugs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from loopcanary.late_dataclass import dataclass
from loopcanary.model import LoopHealth, Session
from loopcanary.model.search import IssueMark

Delay = Callable[[Sequence[tuple[int, int]]], int | None]
"""From stalls, each with its length and what of it is taken away (ns), to how long events would wait then
(99 %); None: unknown."""
Delays = Callable[[Sequence[LoopHealth]], Delay]
"""That function of loops that are taken as one; assembly has it from the diagnosis."""


class LoopKey(NamedTuple):
    """Loops that are one, over any number of sessions."""

    program: str
    thread: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopGain:
    """What a loop would gain from a group's end."""

    loop: LoopKey
    p99_ns: int
    p99_without_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """What the end of a group would bring."""

    loops: tuple[LoopGain, ...] = ()
    """Those on which it was seen, most gain first; none where the loops' figures are not known."""
    waiting_ns: int | None = None
    """Time that other callbacks were ready and waited while its stalls lasted, added up. See `Loops`."""
    ended_ns: int = 0
    """Stalled time that would end, on loops whose callbacks are known to have waited."""


class Loops:
    """Loops of these sessions, those of one program, thread and kind together.

    How many callbacks wait is not counted stall by stall. What is known is a loop's sum of queue delays, and
    callbacks wait only while the loop is busy: their mean number while it is busy is the quotient of both
    (Little, Operations Research 9, 1961, 383). So the waiting that a group caused is taken as the sum over
    its stalls of its part of the duration x that mean number. An estimate on the low side: queue delay is a
    lower bound, and what arrives at a socket during a stall is not in it.
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
        """What the end of a group would bring. `marks`: its stalls; `share`: what of them would end."""
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
    """Each loop's name for people: no longer than it must be to differ from the others."""
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
