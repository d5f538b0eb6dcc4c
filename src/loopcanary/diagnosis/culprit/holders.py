"""Who held what the stalled thread waited for, and for how much of the stall."""

from __future__ import annotations

from collections.abc import Iterable

from loopcanary.diagnosis.code.stack_frames import PlacedStack
from loopcanary.diagnosis.culprit.suspect import Weighed, find_suspect, to_culprit
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Holder, LockProof, LockView
from loopcanary.model.waiting import THREAD_END
from loopcanary.words.sentences import Sentence, say

_HOLDERS_MAX = 8
_WORTH_SAYING = 0.02
"""Below this share of the stall a holder is named only if there is no other."""


def find_holders(observation: Observation, waiting: Iterable[WeighedSample]) -> tuple[Holder, ...]:
    """The threads that the samples name as holders, most time first: each with its culprit, its share of the
    stall's seen time and, for a lock, the lock's kind and how the holder is known."""
    held: dict[int, list[WeighedSample]] = {}
    for seen in waiting:
        if seen.sample.holder_tid and _is_known(seen.sample.lock):
            held.setdefault(seen.sample.holder_tid, []).append(seen)
    found = [_holder(observation, tid, samples) for tid, samples in held.items()]
    found.sort(key=lambda holder: -holder.share)
    return tuple(h for h in found[:_HOLDERS_MAX] if h is found[0] or h.share >= _WORTH_SAYING)


def _is_known(lock: LockView | None) -> bool:
    return lock is None or lock.proof is not LockProof.NONE


def _holder(observation: Observation, tid: int, samples: list[WeighedSample]) -> Holder:
    stacks: list[Weighed] = [
        (stack, max(1, seen.weight_ns))
        for seen in samples
        if (stack := _stack_of_holder(observation, seen)) is not None
    ]
    suspect = find_suspect(stacks)
    locks = [seen.sample.lock for seen in samples if seen.sample.lock is not None]
    return Holder(
        thread=observation.threads.get(tid) or f"thread {tid}",
        culprit=None if suspect is None else to_culprit(suspect, observation.sites),
        share=round(observation.share(samples), 4),
        lock=locks[0].kind if locks else None,
        proof=locks[0].proof if locks else None,
    )


def _stack_of_holder(observation: Observation, seen: WeighedSample) -> PlacedStack | None:
    """The holder's stack; of a lock that it took in a `with`, from that frame outwards: what it called inside
    the block did not take the lock."""
    stack, lock = seen.sample.holder_stack, seen.sample.lock
    if stack is None:
        return None
    if lock is None or lock.taken_at is None or stack.truncated:
        return observation.place(stack)
    return observation.place_outer(stack, lock.taken_at)


def holder_sentences(holders: tuple[Holder, ...]) -> tuple[Sentence, ...]:
    """`It was held by worker-1 in flush (/srv/app/db.py:12), 84 % of the time.`, one a holder."""
    return tuple(
        say(_code(holder, index), thread=holder.thread, place=_place(holder), share=holder.share)
        for index, holder in enumerate(holders)
    )


def _code(holder: Holder, index: int) -> str:
    if holder.lock == THREAD_END:
        return "thread-ran"
    return "also-held-by" if index else "held-by"


def waiter_sentences(observation: Observation) -> tuple[Sentence, ...]:
    """`3 other threads waited for it, too: worker-1, worker-2 and thread 712.`"""
    evidence = observation.evidence
    count = max(evidence.waiter_count, len(evidence.waiters))
    if not count:
        return ()
    named = [observation.threads.get(tid) or f"thread {tid}" for tid in evidence.waiters]
    left = count - len(named)
    return (say("waiters", count=count, threads=[*named, *([say("more", count=left)] if left else [])]),)


def _place(holder: Holder) -> Sentence | None:
    culprit = holder.culprit
    if culprit is None:
        return None
    return say("place", function=culprit.qualname, file=culprit.file, line=culprit.line)
