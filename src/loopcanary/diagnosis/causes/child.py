"""subprocess: starting a child process, or waiting for one."""

from __future__ import annotations

from loopcanary.diagnosis.cause import Finding
from loopcanary.diagnosis.causes.marks import (
    call_sentence,
    certainty,
    last_name,
    sleep_sentence,
)
from loopcanary.diagnosis.frames import Role
from loopcanary.diagnosis.observation import Observation, Seen
from loopcanary.diagnosis.syscalls import CHILD_CALLS
from loopcanary.model import Cause

WAITING_CALLS = frozenset(
    {"waitpid", "wait3", "wait4", "waitid", "system", "spawnv", "spawnve", "posix_spawn"}
)


def find_child(observation: Observation) -> Finding | None:
    """By a wait for children, or by frames of subprocess: reading a child's pipe is a wait for it too."""
    explained = observation.select(lambda seen: _waits(observation, seen))
    if not explained:
        return None
    return Finding(
        cause=Cause.SUBPROCESS,
        share=observation.share(explained),
        confidence=certainty(explained, named=0.95, guessed=0.8),
        evidence=(
            sleep_sentence(observation, explained, "were starting or awaiting a child process"),
            *call_sentence(observation, explained),
        ),
        explained=explained,
    )


def _waits(observation: Observation, seen: Seen) -> bool:
    if seen.syscall in CHILD_CALLS or Role.CHILD in seen.stack.roles:
        return True
    return not seen.on_cpu and last_name(observation.callee(seen)) in WAITING_CALLS
