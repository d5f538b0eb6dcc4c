"""subprocess: starting a child process, or waiting for one, or for what it reads and writes."""

from __future__ import annotations

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.code.stack_frames import Role
from loopcanary.diagnosis.samples.marks import (
    call_sentence,
    certainty,
    child_words,
    main_target,
    sleep_sentence,
    target_kind,
)
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.syscalls import CHILD_CALLS, READ_CALLS, WAIT_CALLS, WRITE_CALLS
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause, TargetKind
from loopcanary.words.sentences import Sentence, say

WAITING_CALLS = frozenset(
    {"waitpid", "wait3", "wait4", "waitid", "system", "waitForStarted", "waitForFinished"}
)
"""The last two are QProcess's."""
STARTING_CALLS = frozenset({"fork", "forkpty", "posix_spawn", "posix_spawnp", "spawnv", "spawnve", "spawnl"})
"""These work rather than wait: a fork of a big process copies its page tables."""

_OWNERS = ("", "os", "posix", "pty")
"""Of STARTING_CALLS: `repo.fork()` starts no process."""


def find_child(observation: Observation) -> Finding | None:
    """By a wait for children, by frames of subprocess, or by a pipe, whose other end is mostly a child's."""
    explained = observation.select(lambda seen: _waits(observation, seen))
    if not explained:
        return None
    topic = _pipe_topic(explained)
    return Finding(
        cause=Cause.SUBPROCESS,
        share=observation.share(explained),
        confidence=certainty(explained, named=0.95, guessed=0.8),
        evidence=(
            sleep_sentence(observation, explained, "at-child"),
            *_pipe_sentence(explained, topic),
            *call_sentence(observation, explained),
        ),
        explained=explained,
        # With frames of subprocess.py the remedy for these says more.
        topic=None if any(Role.CHILD in seen.stack.path.roles for seen in explained) else topic,
    )


def _waits(observation: Observation, seen: WeighedSample) -> bool:
    kind = target_kind(seen)
    if kind is TargetKind.CHILD or seen.syscall in CHILD_CALLS or Role.CHILD in seen.stack.path.roles:
        return True
    if kind is TargetKind.PIPE and seen.syscall in READ_CALLS | WRITE_CALLS | WAIT_CALLS:
        return True
    callee = observation.callee(seen) or ""
    owner, _, name = callee.rpartition(".")
    if name in STARTING_CALLS:
        return owner in _OWNERS
    return not seen.on_cpu and name in WAITING_CALLS


def _piped(explained: tuple[WeighedSample, ...]) -> list[WeighedSample]:
    return [seen for seen in explained if target_kind(seen) is TargetKind.PIPE]


def _pipe_topic(explained: tuple[WeighedSample, ...]) -> str | None:
    piped = _piped(explained)
    if 2 * len(piped) <= len(explained):
        return None
    writing = sum(seen.syscall in WRITE_CALLS for seen in piped)
    return "full-pipe" if 2 * writing > len(piped) else "empty-pipe"


def _pipe_sentence(explained: tuple[WeighedSample, ...], topic: str | None) -> tuple[Sentence, ...]:
    if topic is None:
        return ()
    target = main_target(_piped(explained))
    other = child_words(target) if target and target.pid else say("other-end")
    return (say("pipe-full" if topic == "full-pipe" else "pipe-empty", other=other),)
