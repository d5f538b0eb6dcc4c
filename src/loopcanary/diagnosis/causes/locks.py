"""lock: waiting for another thread, or another process, to let go."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.causes.waits import resolves
from loopcanary.diagnosis.code.call_sites import CallSite
from loopcanary.diagnosis.code.ownership import Owner
from loopcanary.diagnosis.code.stack_frames import PlacedStack
from loopcanary.diagnosis.culprit.suspect import Weighed, find_suspect, to_culprit
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
from loopcanary.model import Cause, GilState, Holder, LockProof, LockView
from loopcanary.model.stall import is_own_thread
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
    explained = observation.select(lambda seen: _waits_for_lock(observation, seen))
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
        taking = [seen for seen in explained if not _waits_to_be_woken(observation, seen)]
        is_unknown = 2 * len(taking) > len(explained) and all(seen.sample.lock is not None for seen in taking)
        return "holder-unknown" if is_unknown and _no_holder(explained) == "holder-unknown" else None
    return "deadlock" if _holds_it_itself(observation, explained) else "held-lock"


def _holds_it_itself(observation: Observation, explained: tuple[WeighedSample, ...]) -> bool:
    own = [seen for seen in explained if seen.sample.holder_tid == observation.evidence.tid]
    return 2 * len(own) > len(explained)


def _waits_for_lock(observation: Observation, seen: WeighedSample) -> bool:
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


def find_gil(observation: Observation) -> Finding | None:
    """By samples that sleep on the GIL itself. If the sampler could not tell which futex it was: by samples
    in a futex while another thread held the GIL, unless the frame waits for a lock. With those in which it
    was awake to ask for the GIL, and got no CPU for it."""
    asleep = observation.select(lambda seen: _waits_for_gil(observation, seen))
    if not asleep:
        return None
    places, taken = {id(seen.stack) for seen in asleep}, set(map(id, asleep))
    explained = observation.select_each(
        lambda seen: id(seen) in taken or (id(seen.stack) in places and _asks_for_gil(seen))
    )
    certain = sum(seen.sample.waits_for_gil for seen in explained) / len(explained)
    holders = find_holders(observation, explained)
    sentences = [say("gil-waited", some=observation.of_all(asleep))]
    waited_ns = observation.ledger.gil_wait_ns
    if waited_ns:
        sentences.append(say("gil-waited-for", waited=waited_ns, whole=observation.duration_ns))
    if len(explained) > len(asleep):
        sentences.append(say("gil-asked", count=len(explained) - len(asleep)))
    return Finding(
        cause=Cause.GIL,
        share=observation.share(explained),
        confidence=0.65 + 0.3 * certain,
        evidence=(*sentences, *(holder_sentences(holders) or (say("gil-holder-unread"),))),
        explained=explained,
        holders=holders,
    )


def _waits_for_gil(observation: Observation, seen: WeighedSample) -> bool:
    sample = seen.sample
    if sample.waits_for_gil:
        return True
    if sample.gil is not GilState.OTHER or seen.syscall not in FUTEX_CALLS or sample.lock is not None:
        return False
    return not looks_like_lock(observation, seen) and not resolves(observation, seen)


_ASKING_SHARE = 0.05
"""Of the time: what computes on a busy machine gets more."""


def _asks_for_gil(seen: WeighedSample) -> bool:
    """Whether it was ready and hardly ran, while another thread held the GIL. A thread that waits for the GIL
    wakes every few milliseconds to ask for it, and on a busy machine has to wait for a CPU to do so."""
    is_ready = seen.state == "R" and seen.sample.gil is GilState.OTHER
    return is_ready and seen.cpu_share is not None and seen.cpu_share < _ASKING_SHARE


_OTHERS = frozenset({Owner.OWN, Owner.OTHER, Owner.INSTALLED})


def find_own(observation: Observation) -> Finding | None:
    """By samples that name such a thread as the holder, unless it ran what the program or a package plugged
    in. Asked before all that look for holders. A stall that has a cause of the program's is that cause's."""
    explained = observation.select_each(lambda seen: _is_held_by_us(observation, seen))
    if not explained:
        return None
    by_gil = [seen for seen in explained if seen.sample.lock is None]
    is_gil = 2 * len(by_gil) >= len(explained)
    share = observation.share(explained)
    name = observation.threads.get(explained[0].sample.holder_tid or 0, "")
    return Finding(
        cause=Cause.GIL if is_gil else Cause.LOCK,
        share=share,
        confidence=0.95,
        evidence=(
            say("held-by-us", some=observation.of_all(explained), what="the GIL" if is_gil else "a lock"),
        ),
        explained=explained,
        holders=(Holder(thread=name, culprit=None, share=round(share, 4), lock=_kind(explained, is_gil)),),
        title="own-work",
        topic="own-work",
        blameless=True,
        yields=True,
    )


def _kind(explained: tuple[WeighedSample, ...], is_gil: bool) -> str | None:
    locks = [seen.sample.lock.kind for seen in explained if seen.sample.lock is not None]
    return None if is_gil or not locks else locks[0]


def _is_held_by_us(observation: Observation, seen: WeighedSample) -> bool:
    sample = seen.sample
    if not sample.holder_tid or not is_own_thread(observation.threads.get(sample.holder_tid, "")):
        return False
    if sample.lock is None and not sample.waits_for_gil:
        return False
    stack = sample.holder_stack
    return stack is None or not any(
        function.owner in _OTHERS for function in observation.place(stack).path.whole
    )


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
