"""dns: resolving a name."""

from __future__ import annotations

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.code.stack_frames import Role
from loopcanary.diagnosis.samples.marks import (
    call_sentence,
    in_file,
    last_name,
    main_target,
    slept_in,
    target_words,
)
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause
from loopcanary.words.sentences import say

RESOLVING_CALLS = frozenset(
    {"getaddrinfo", "getnameinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr", "getfqdn"}
)


def find_dns(observation: Observation) -> Finding | None:
    """By the name of the call or of the function, whatever the resolver sleeps in: glibc polls a socket,
    reads files, or asks a daemon."""
    explained = observation.select(lambda seen: resolves(observation, seen))
    if not explained:
        return None
    calls, server = slept_in(explained), target_words(main_target(explained))
    asleep = say("asleep-in", calls=calls, target=server) if calls else None
    return Finding(
        cause=Cause.DNS,
        share=observation.share(explained),
        confidence=0.95,
        evidence=(
            say("resolving", some=observation.of_all(explained), asleep=asleep),
            *call_sentence(observation, explained),
        ),
        explained=explained,
    )


def resolves(observation: Observation, seen: WeighedSample) -> bool:
    """Whether a sample is in a call that resolves names."""
    if in_file(seen, "socket.py") and seen.stack.at(0).shown.function in RESOLVING_CALLS:
        return True
    if seen.on_cpu:  # a thread that computes is seldom at such a call: its source need not be read
        return False
    return Role.NAME in seen.stack.path.roles or last_name(observation.callee(seen)) in RESOLVING_CALLS
