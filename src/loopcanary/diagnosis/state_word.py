"""What a thread that does not respond is, in one word.

| word | rule; the first that holds counts |
|---|---|
| stopped | half of the time it was stopped by a signal or tracer, or neither it nor the watchdog ran |
| starved | half of the time it was ready and got no CPU |
| deadlocked | half of the time it waited for its own lock, or in a circle of threads without a timeout |
| peer-dead | it has been in a `connect` for 3 s, in which a peer that lives answers two tries |
| hung | over the second half of the time it was in one line of one function |
| slow | else |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopcanary.diagnosis.causes.verdict import Verdict
from loopcanary.diagnosis.culprit.circles import in_deadlock_share
from loopcanary.diagnosis.samples.marks import last_name
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause, StateWord
from loopcanary.model.stall import HANG_NS

_MOST = 0.5
_UNANSWERED_NS = 3_000_000_000
"""The kernel sends a SYN again after 1 s and after 3 s."""
_CONNECTS = frozenset({"connect", "connect_ex", "create_connection"})
_TWO = 2
"""So many looks say whether the thread gets on."""


def state_word_of(observation: Observation, verdict: Verdict) -> StateWord | None:
    """The word of a stall of 1 s and more; None: it is shorter, or a crash. `observation`: of all
    its samples."""
    if observation.duration_ns < HANG_NS or verdict.cause is Cause.CRASH:
        return None
    return next((word for word, holds in _RULES if holds(observation, verdict)), StateWord.SLOW)


def _is_stopped(observation: Observation, verdict: Verdict) -> bool:
    stopped = observation.share(observation.select(lambda seen: seen.state in ("T", "t")))
    frozen = observation.frozen_ns / observation.total_ns if observation.total_ns else 0.0
    queued = observation.ledger.run_queue_ns or 0
    is_frozen = frozen >= _MOST and verdict.cause is Cause.HOST and queued < observation.frozen_ns
    return stopped >= _MOST or is_frozen


def _is_starved(observation: Observation, verdict: Verdict) -> bool:
    queued = observation.ledger.run_queue_ns or 0
    is_hosts = verdict.cause is Cause.HOST and verdict.first is not None and verdict.first.share >= _MOST
    return is_hosts or queued >= _MOST * observation.duration_ns


def _is_deadlocked(observation: Observation, _: Verdict) -> bool:
    tid = observation.evidence.tid
    own = observation.select_each(lambda seen: seen.sample.lock is not None and seen.sample.holder_tid == tid)
    return max(observation.share(own), in_deadlock_share(observation)) >= _MOST


def _is_peer_dead(observation: Observation, verdict: Verdict) -> bool:
    if verdict.cause is not Cause.NETWORK_IO:
        return False
    last = _last_run(observation, lambda seen: _connects(observation, seen))
    return bool(last) and _length_ns(observation, last) >= _UNANSWERED_NS


def _connects(observation: Observation, seen: WeighedSample) -> bool:
    return seen.syscall == "connect" or last_name(observation.callee(seen)) in _CONNECTS


def _is_hung(observation: Observation, _: Verdict) -> bool:
    """A thread of which nothing is seen is hung where it mostly waited."""
    seen = observation.seen
    middle_ns = observation.evidence.begin_ns + observation.duration_ns // 2
    late = [one for one in seen if one.sample.at_ns >= middle_ns and one.stack]
    if len(late) < _TWO:
        return (observation.ledger.blocked_ns or 0) >= _MOST * observation.duration_ns
    return len({one.innermost for one in late}) == 1


def _last_run(observation: Observation, accepts: Callable[[WeighedSample], bool]) -> Sequence[WeighedSample]:
    """The samples at the end, as far back as all are accepted."""
    run: list[WeighedSample] = []
    for seen in reversed(observation.seen):
        if not accepts(seen):
            break
        run.append(seen)
    return run[::-1]


def _length_ns(observation: Observation, run: Sequence[WeighedSample]) -> int:
    """From the first of the last samples to the end of the stall."""
    return observation.evidence.begin_ns + observation.duration_ns - run[0].sample.at_ns


_RULES: tuple[tuple[StateWord, Callable[[Observation, Verdict], bool]], ...] = (
    (StateWord.STOPPED, _is_stopped),
    (StateWord.STARVED, _is_starved),
    (StateWord.DEADLOCKED, _is_deadlocked),
    (StateWord.PEER_DEAD, _is_peer_dead),
    (StateWord.HUNG, _is_hung),
)
