"""sleep: waiting for time to pass."""

from __future__ import annotations

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.samples.marks import call_sentence, certainty, last_name, sleep_sentence
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.syscalls import POLL_CALLS, SELECT_CALLS, SLEEP_CALLS
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause

SLEEPING_CALLS = frozenset({"sleep", "nanosleep", "usleep"})


def find_sleep(observation: Observation) -> Finding | None:
    """By the system call; by the text of the call where the kernel named none."""
    explained = observation.select(lambda seen: _sleeps(observation, seen))
    if not explained:
        return None
    return Finding(
        cause=Cause.SLEEP,
        share=observation.share(explained),
        confidence=certainty(explained, named=0.98, guessed=0.8),
        evidence=(
            sleep_sentence(observation, explained, "at-sleep"),
            *call_sentence(observation, explained),
        ),
        explained=explained,
    )


def _sleeps(observation: Observation, seen: WeighedSample) -> bool:
    if seen.syscall in SLEEP_CALLS or waits_for_nothing(seen):
        return True
    return seen.waits_unseen and last_name(observation.callee(seen)) in SLEEPING_CALLS


def waits_for_nothing(seen: WeighedSample) -> bool:
    """A select or poll of no descriptor: a sleep in other words."""
    kernel = seen.sample.kernel
    if kernel is None:
        return False
    descriptors, count, _ = kernel.syscall_args
    return (seen.syscall in SELECT_CALLS and descriptors == 0) or (seen.syscall in POLL_CALLS and count == 0)
