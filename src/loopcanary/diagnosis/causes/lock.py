"""lock: waiting for another thread, or another process, to let go."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.code.call_sites import CallSite
from loopcanary.diagnosis.culprit.holders import find_holders, holder_sentences, waiter_sentences
from loopcanary.diagnosis.samples.marks import (
    call_sentence,
    certainty,
    in_file,
    is_file,
    last_name,
    sleep_sentence,
)
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.syscalls import FUTEX_CALLS, LOCK_CALLS, LOCK_COMMANDS
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause, GilState, Holder, LockProof
from loopcanary.model.waiting import SHARED_LOCK, SHARED_RLOCK, SHARED_SEMAPHORE, THREAD_END
from loopcanary.words.sentences import Sentence, say

WAITING_CALLS = frozenset(
    {"acquire", "join", "wait", "wait_for", "get", "put", "result", "exception", "shutdown", "lock", "lockf"}
)
_FILES = (
    "threading.py",
    "queue.py",
    "futures/_base.py",
    "futures/thread.py",
    "multiprocessing/synchronize.py",
    "multiprocessing/pool.py",
)
_LOCK_NAME = re.compile(r"lock|mutex|sem|cond|guard|barrier", re.IGNORECASE)
_NO_HOLDER = {
    SHARED_LOCK: "holder-elsewhere",
    SHARED_RLOCK: "holder-elsewhere",
    SHARED_SEMAPHORE: "semaphore",
}
"""What is said where no thread is known to hold a lock of this kind."""
_PROOFS = {
    LockProof.OWNER: "owner-named",
    LockProof.WITH: "owner-with",
}


def find_lock(observation: Observation) -> Finding | None:
    """By a futex that is not the GIL's, or a lock between processes; by frames and text where the kernel
    named no call. Asked after `gil`."""
    explained = observation.select(lambda seen: _waits(observation, seen))
    if not explained:
        return None
    doubtful = all(
        seen.sample.gil is GilState.UNKNOWN
        and seen.sample.lock is None
        and not looks_like_lock(observation, seen)
        for seen in explained
    )
    holders = find_holders(observation, [seen for seen in explained if seen.sample.lock is not None])
    sentences = [
        sleep_sentence(observation, explained, "at-lock"),
        *call_sentence(observation, explained),
        *_holder_sentences(observation, explained, holders),
        *(waiter_sentences(observation) if any(seen.sample.lock is not None for seen in explained) else ()),
    ]
    if doubtful:
        sentences.append(say("maybe-gil"))
    return Finding(
        cause=Cause.LOCK,
        share=observation.share(explained),
        confidence=0.4 if doubtful else certainty(explained, named=0.9, guessed=0.6),
        evidence=tuple(sentences),
        explained=explained,
        holders=holders,
        topic=_topic(observation, explained, holders),
    )


def _topic(
    observation: Observation, explained: tuple[WeighedSample, ...], holders: tuple[Holder, ...]
) -> str | None:
    if not holders:
        return None
    return "deadlock" if _holds_it_itself(observation, explained) else "held-lock"


def _holds_it_itself(observation: Observation, explained: tuple[WeighedSample, ...]) -> bool:
    own = [seen for seen in explained if seen.sample.holder_tid == observation.evidence.tid]
    return 2 * len(own) > len(explained)


def _waits(observation: Observation, seen: WeighedSample) -> bool:
    if seen.syscall in LOCK_CALLS or _locks_by_fcntl(seen):
        return True
    if seen.syscall in FUTEX_CALLS or seen.sample.lock is not None:
        return True
    return seen.waits_unseen and looks_like_lock(observation, seen)


def _locks_by_fcntl(seen: WeighedSample) -> bool:
    kernel = seen.sample.kernel
    return seen.syscall == "fcntl" and kernel is not None and kernel.syscall_args[1] in LOCK_COMMANDS


def looks_like_lock(observation: Observation, seen: WeighedSample) -> bool:
    """Whether the innermost frame is one that waits for other threads, by its file or its text."""
    if in_file(seen, *_FILES):
        return True
    site = observation.site(seen)
    return last_name(site.callee) in WAITING_CALLS or _enters_lock(site)


def _enters_lock(site: CallSite) -> bool:
    """`with self._lock:` is a call without brackets: the text is the lock's name."""
    if site.callee is not None or site.text is None or site.source is None:
        return False
    return site.source.startswith("with ") and _LOCK_NAME.search(site.text) is not None


def _waits_to_be_woken(observation: Observation, seen: WeighedSample) -> bool:
    """Whether it waits in a condition, as queues, events, barriers and futures do. The condition's own lock,
    which is taken again afterwards, has a holder."""
    inner = seen.innermost
    if inner is None or not is_file(inner, "threading.py") or inner.shown.qualname != "Condition.wait":
        return False
    return last_name(observation.callee(seen)) != "_acquire_restore"


def _no_holder(explained: tuple[WeighedSample, ...]) -> str:
    kinds = {seen.sample.lock.kind for seen in explained if seen.sample.lock is not None}
    if len(kinds) != 1:
        return "holder-unknown"
    return _NO_HOLDER.get(kinds.pop(), "holder-unknown")


def _holder_sentences(
    observation: Observation, explained: tuple[WeighedSample, ...], holders: tuple[Holder, ...]
) -> Iterator[Sentence]:
    if not holders and any(seen.sample.lock is not None for seen in explained):
        woken = [seen for seen in explained if _waits_to_be_woken(observation, seen)]
        yield say("held-by-none" if 2 * len(woken) > len(explained) else _no_holder(explained))
    if holders:
        yield from holder_sentences(holders)
        if holders[0].proof in _PROOFS and holders[0].lock != THREAD_END:
            yield say(_PROOFS[holders[0].proof])
        if _holds_it_itself(observation, explained):
            yield say("self-deadlock")
