"""gil: another thread held the global interpreter lock."""

from __future__ import annotations

from loopcanary.diagnosis.cause import Finding
from loopcanary.diagnosis.causes.lock import looks_like_lock
from loopcanary.diagnosis.culprit import Weighed, find_suspect, to_culprit
from loopcanary.diagnosis.observation import Observation, Seen
from loopcanary.diagnosis.syscalls import FUTEX_CALLS
from loopcanary.model import Cause, GilState, Holder
from loopcanary.model.units import format_duration


def find_gil(observation: Observation) -> Finding | None:
    """By samples that sleep on the GIL itself. Where the sampler could not tell which futex it was: by
    one while another thread held the GIL, unless the frame says that it waits for a lock."""
    explained = observation.select(lambda seen: _waits(observation, seen))
    if not explained:
        return None
    certain = sum(seen.sample.waits_for_gil for seen in explained) / len(explained)
    holder = _find_holder(observation, explained)
    return Finding(
        cause=Cause.GIL,
        share=observation.share(explained),
        confidence=0.65 + 0.3 * certain,
        evidence=tuple(_sentences(observation, explained, holder)),
        explained=explained,
        holder=holder,
    )


def _waits(observation: Observation, seen: Seen) -> bool:
    sample = seen.sample
    if sample.waits_for_gil:
        return True
    if sample.gil is not GilState.OTHER or seen.syscall not in FUTEX_CALLS:
        return False
    return not looks_like_lock(observation, seen)


def _find_holder(observation: Observation, explained: tuple[Seen, ...]) -> Holder | None:
    """The thread that held it for most of the wait, and its own culprit."""
    held: dict[int, int] = {}
    for seen in explained:
        tid = seen.sample.holder_tid
        if tid:
            held[tid] = held.get(tid, 0) + seen.weight_ns
    if not held:
        return None
    tid = max(held, key=lambda entry: held[entry])
    stacks: list[Weighed] = [
        (observation.place(seen.sample.holder_stack).work, seen.weight_ns)
        for seen in explained
        if seen.sample.holder_tid == tid and seen.sample.holder_stack is not None
    ]
    suspect = find_suspect(stacks)
    culprit = None if suspect is None else to_culprit(suspect, observation.sites)
    return Holder(thread=observation.threads.get(tid) or f"thread {tid}", culprit=culprit)


def _sentences(observation: Observation, explained: tuple[Seen, ...], holder: Holder | None) -> list[str]:
    sentences = [f"{observation.of_all(explained)} waited for the GIL."]
    waited_ns = observation.ledger.gil_wait_ns
    if waited_ns:
        sentences.append(
            f"That is {format_duration(waited_ns)} of {format_duration(observation.duration_ns)}."
        )
    if holder is None:
        sentences.append("The thread that held it could not be read.")
    elif holder.culprit is None:
        sentences.append(f"It was held by {holder.thread}.")
    else:
        place = f"{holder.culprit.file}:{holder.culprit.line}"
        sentences.append(f"It was held by {holder.thread} in {holder.culprit.qualname} ({place}).")
    return sentences
