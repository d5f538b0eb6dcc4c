"""Threads that wait for each other in a circle: which, where each waits, and for what."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from loopcanary.diagnosis.culprit.suspect import find_suspect, to_culprit
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Culprit, Stack, ThreadWait
from loopcanary.model.waiting import FUTURE, IMPORT_LOCK, THREAD_END
from loopcanary.words.sentences import Sentence, say

_CODES = {THREAD_END: "waits-for-end", FUTURE: "waits-for-result"}
_MOST = 0.5
"""The part of a stall that has to be spent in a circle for the name deadlock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CircleWait:
    """A thread, and what it waits for."""

    tid: int
    thread: str
    place: Culprit | None
    """Where it waits."""
    lock: str
    holder_tid: int
    holder: str
    has_timeout: bool


@dataclass(frozen=True, slots=True)
class Circle:
    """The chain of waits that begins with the stalled thread, and comes back to one of its threads."""

    waits: tuple[CircleWait, ...]

    @property
    def members(self) -> tuple[CircleWait, ...]:
        """The threads that wait for each other: all, or all but the first ones, which wait for a circle."""
        tids = [wait.tid for wait in self.waits]
        return self.waits[tids.index(self.waits[-1].holder_tid) :]

    @property
    def timed(self) -> tuple[CircleWait, ...]:
        """The members that give up by themselves: with one of them the circle is not a deadlock."""
        return tuple(wait for wait in self.members if wait.has_timeout)

    @property
    def topic(self) -> str:
        """What the advice is about: the `topic` of a row of words.remedies."""
        kinds = [wait.lock for wait in self.members]
        what = "timeout" if self.timed else "deadlock"
        if len(kinds) > 1 and not any(kind not in _CODES for kind in kinds):
            return "join-needs-loop" if FUTURE in kinds else "threads-need-each-other"
        if THREAD_END in kinds:
            return f"{what}-of-join"
        if FUTURE in kinds:
            return "deadlock-with-loop" if len(kinds) == 1 else f"{what}-of-future"
        if all(kind.startswith(IMPORT_LOCK) for kind in kinds):
            return "deadlock-of-imports"
        return "deadlock" if len(kinds) == 1 else f"{what}-of-locks"


def in_deadlock_share(observation: Observation) -> float:
    """The part of the stall for which samples prove a circle that does not end by itself."""
    circle = find_circle(observation)
    return 0.0 if circle is not None and circle.timed else _in_circle_share(observation)


def find_circle(observation: Observation) -> Circle | None:
    """The circle that half of the stall and more was spent in or before; None: there is none, or its threads
    are not known. `observation`: of all its samples."""
    if _in_circle_share(observation) < _MOST:
        return None
    waits = tuple([_wait(observation, wait) for wait in observation.evidence.circle])
    return Circle(waits) if _is_whole(waits, observation.evidence.tid) else None


def circle_sentences(circle: Circle) -> Iterator[Sentence]:
    """`A deadlock: MainThread and worker wait for each other.`, then what each waits for."""
    names, timed = [wait.thread for wait in circle.members], [wait.thread for wait in circle.timed]
    many, one = ("timed-circle", "own-timed-circle") if timed else ("deadlock", "own-deadlock")
    yield say(many, threads=names) if len(names) > 1 else say(one, thread=names[0])
    for wait in circle.waits:
        where = None if wait.place is None else _where(wait.place)
        code = _CODES.get(wait.lock, "waits-for-lock")
        yield say(code, thread=wait.thread, place=where, lock=wait.lock, holder=wait.holder)
    if timed:
        yield say("gives-up", threads=timed)


def _in_circle_share(observation: Observation) -> float:
    return observation.share(observation.select_each(lambda seen: seen.sample.in_circle))


def _wait(observation: Observation, wait: ThreadWait) -> CircleWait:
    return CircleWait(
        tid=wait.tid,
        thread=_name(observation, wait.tid),
        place=_culprit(observation, wait.stack),
        lock=wait.lock.kind,
        holder_tid=wait.holder_tid,
        holder=_name(observation, wait.holder_tid),
        has_timeout=wait.has_timeout,
    )


def _name(observation: Observation, tid: int) -> str:
    evidence = observation.evidence
    if tid == evidence.tid and evidence.thread_name:
        return evidence.thread_name
    return observation.threads.get(tid) or f"thread {tid}"


def _culprit(observation: Observation, stack: Stack | None) -> Culprit | None:
    suspect = None if stack is None else find_suspect([(observation.place(stack), 1)])
    return None if suspect is None else to_culprit(suspect, observation.sites)


def _where(culprit: Culprit) -> Sentence:
    return say("place", function=culprit.qualname, file=culprit.file, line=culprit.line)


def _is_whole(waits: tuple[CircleWait, ...], tid: int) -> bool:
    """Whether each waits for the next, and the last for one of them: a damaged file may say otherwise."""
    tids = [wait.tid for wait in waits]
    leads_on = all(one.holder_tid == after.tid for one, after in pairwise(waits))
    return tids[:1] == [tid] and leads_on and waits[-1].holder_tid in tids and len(set(tids)) == len(tids)
