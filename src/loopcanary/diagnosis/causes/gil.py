"""gil: another thread held the global interpreter lock."""

from __future__ import annotations

from loopcanary.diagnosis.causes.dns import resolves
from loopcanary.diagnosis.causes.lock import looks_like_lock
from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.culprit.holders import find_holders, holder_sentences
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.syscalls import FUTEX_CALLS
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause, GilState
from loopcanary.words.sentences import say


def find_gil(observation: Observation) -> Finding | None:
    """By samples that sleep on the GIL itself. If the sampler could not tell which futex it was: by samples
    in a futex while another thread held the GIL, unless the frame waits for a lock."""
    explained = observation.select(lambda seen: _waits(observation, seen))
    if not explained:
        return None
    certain = sum(seen.sample.waits_for_gil for seen in explained) / len(explained)
    holders = find_holders(observation, explained)
    sentences = [say("gil-waited", some=observation.of_all(explained))]
    waited_ns = observation.ledger.gil_wait_ns
    if waited_ns:
        sentences.append(say("gil-waited-for", waited=waited_ns, whole=observation.duration_ns))
    return Finding(
        cause=Cause.GIL,
        share=observation.share(explained),
        confidence=0.65 + 0.3 * certain,
        evidence=(*sentences, *(holder_sentences(holders) or (say("gil-holder-unread"),))),
        explained=explained,
        holders=holders,
    )


def _waits(observation: Observation, seen: WeighedSample) -> bool:
    sample = seen.sample
    if sample.waits_for_gil:
        return True
    if sample.gil is not GilState.OTHER or seen.syscall not in FUTEX_CALLS or sample.lock is not None:
        return False
    return not looks_like_lock(observation, seen) and not resolves(observation, seen)
