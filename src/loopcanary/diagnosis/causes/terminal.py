"""disk-io in other words: waiting for a person at a terminal, or for the feeder of standard input.

A closed set of causes has no word of its own for it; a terminal is a file by name at least. Title, evidence
and advice say what it is.
"""

from __future__ import annotations

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.samples.marks import (
    call_sentence,
    certainty,
    last_name,
    sleep_sentence,
    target_kind,
)
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.syscalls import READ_CALLS, WAIT_CALLS, WRITE_CALLS
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause, TargetKind
from loopcanary.words.sentences import say

READING_CALLS = frozenset({"input", "getpass", "raw_input", "getch", "getwch"})
_STDIN = 0


def find_terminal(observation: Observation) -> Finding | None:
    """By what the descriptor is; where that is not known, by `input` and its kin, or a read of descriptor 0,
    unless it is known to be something else."""
    explained = observation.select(lambda seen: _waits(observation, seen))
    if not explained:
        return None
    writes = [seen for seen in explained if seen.syscall in WRITE_CALLS]
    direction = "terminal-output" if 2 * len(writes) > len(explained) else "terminal-input"
    return Finding(
        cause=Cause.DISK_IO,
        share=observation.share(explained),
        confidence=certainty(explained, named=0.92, guessed=0.8),
        evidence=(
            sleep_sentence(observation, explained, "at-terminal"),
            say(direction),
            *call_sentence(observation, explained),
        ),
        explained=explained,
        topic=None if _is_known(observation, explained) else direction,
        title=direction,
    )


def _is_known(observation: Observation, explained: tuple[WeighedSample, ...]) -> bool:
    """Whether it is `input` or its kin, which the table of remedies has rows for."""
    return any(last_name(observation.callee(seen)) in READING_CALLS for seen in explained)


def _waits(observation: Observation, seen: WeighedSample) -> bool:
    kind = target_kind(seen)
    if kind is TargetKind.TERMINAL:
        return seen.syscall is None or seen.syscall in READ_CALLS | WRITE_CALLS | WAIT_CALLS
    if kind is not None and kind is not TargetKind.OTHER:
        return False
    if seen.syscall in READ_CALLS:
        kernel = seen.sample.kernel
        if kernel is not None and kernel.syscall_args[0] == _STDIN and seen.state != "D":
            return True
    if seen.syscall is not None and seen.syscall not in READ_CALLS | WAIT_CALLS:
        return False
    return seen.on_cpu is not True and last_name(observation.callee(seen)) in READING_CALLS
