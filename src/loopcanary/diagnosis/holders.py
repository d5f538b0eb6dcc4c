"""Who held what the stalled thread waited for, and for how much of the stall."""

from __future__ import annotations

from collections.abc import Iterable

from loopcanary.diagnosis.culprit import Weighed, find_suspect, to_culprit
from loopcanary.diagnosis.observation import Observation, Seen
from loopcanary.model import Holder, LockProof, LockView

_HOLDERS_MAX = 8
_WORTH_SAYING = 0.02
"""Below this share of the stall a holder is told only if there is no other."""


def find_holders(observation: Observation, waiting: Iterable[Seen]) -> tuple[Holder, ...]:
    """The threads that the samples name as holders, each with its own culprit, its share of the stall's
    seen time and, for a lock, the kind of the lock and how its holder is known. Most time first."""
    held: dict[int, list[Seen]] = {}
    for seen in waiting:
        if seen.sample.holder_tid and _is_known(seen.sample.lock):
            held.setdefault(seen.sample.holder_tid, []).append(seen)
    found = [_holder(observation, tid, samples) for tid, samples in held.items()]
    found.sort(key=lambda holder: -holder.share)
    return tuple(h for h in found[:_HOLDERS_MAX] if h is found[0] or h.share >= _WORTH_SAYING)


def _is_known(lock: LockView | None) -> bool:
    return lock is None or lock.proof is not LockProof.NONE


def _holder(observation: Observation, tid: int, samples: list[Seen]) -> Holder:
    stacks: list[Weighed] = [
        (observation.place(seen.sample.holder_stack), max(1, seen.weight_ns))
        for seen in samples
        if seen.sample.holder_stack is not None
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


def holder_sentences(holders: tuple[Holder, ...]) -> tuple[str, ...]:
    """`It was held by worker-1 in flush (/srv/app/db.py:12), 84 % of the time.`, one a holder."""
    return tuple(
        f"{'It was held' if index == 0 else 'Also held'} by {holder.thread}{_place(holder)}, "
        f"{round(100 * holder.share)} % of the time."
        for index, holder in enumerate(holders)
    )


def waiter_sentences(observation: Observation) -> tuple[str, ...]:
    """`3 other threads waited for it, too: worker-1, worker-2 and thread 712.`"""
    evidence = observation.evidence
    count = max(evidence.waiter_count, len(evidence.waiters))
    if not count:
        return ()
    named = [observation.threads.get(tid) or f"thread {tid}" for tid in evidence.waiters]
    left = count - len(named)
    names = [*named, *([f"{left} more"] if left else [])]
    words = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return (f"{'One other thread' if count == 1 else f'{count} other threads'} waited for it, too: {words}.",)


def _place(holder: Holder) -> str:
    culprit = holder.culprit
    return "" if culprit is None else f" in {culprit.qualname} ({culprit.file}:{culprit.line})"
