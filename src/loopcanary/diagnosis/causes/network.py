"""network-io: waiting for a peer."""

from __future__ import annotations

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.samples.marks import (
    call_sentence,
    certainty,
    in_file,
    last_name,
    sleep_sentence,
    target_kind,
)
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.outside_events import waits_for_event
from loopcanary.diagnosis.samples.syscalls import FILE_CALLS, NETWORK_CALLS, STREAM_CALLS
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause, TargetKind

SOCKET_CALLS = frozenset(
    {
        *("connect", "connect_ex", "create_connection", "accept", "do_handshake", "urlopen"),
        *("recv", "recv_into", "recvfrom", "recvmsg", "send", "sendall", "sendto", "sendfile"),
    }
)
_FILES = ("socket.py", "ssl.py", "http/client.py", "smtplib.py", "ftplib.py", "imaplib.py", "poplib.py")


def find_network(observation: Observation) -> Finding | None:
    """By the system call, or any on a socket. OpenSSL reads sockets with `read`, so a `read` under a
    socket's or ssl's frame counts. Where the kernel named no call: by frames and text."""
    explained = observation.select(lambda seen: _waits(observation, seen))
    if not explained:
        return None
    return Finding(
        cause=Cause.NETWORK_IO,
        share=observation.share(explained),
        confidence=certainty(explained, named=0.92, guessed=0.65),
        evidence=(
            sleep_sentence(observation, explained, "at-socket"),
            *call_sentence(observation, explained),
        ),
        explained=explained,
    )


def _waits(observation: Observation, seen: WeighedSample) -> bool:
    kind = target_kind(seen)
    if kind is TargetKind.SOCKET and seen.syscall in FILE_CALLS | NETWORK_CALLS:
        return True
    if kind is TargetKind.FILE or waits_for_event(seen):
        return False
    if seen.syscall in NETWORK_CALLS:
        return True
    if seen.syscall is not None and seen.syscall not in STREAM_CALLS:
        return False
    if seen.syscall is None and not seen.waits_unseen:
        return False
    return in_file(seen, *_FILES) or last_name(observation.callee(seen)) in SOCKET_CALLS
