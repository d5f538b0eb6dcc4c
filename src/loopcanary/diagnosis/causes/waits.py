"""Waits: for time (sleep), a person or feeder at a terminal (disk-io in other words: a closed set of causes
has no word of its own for it, and a terminal is a file by name at least), a child (subprocess), a name (dns),
a peer (network-io)."""

from __future__ import annotations

import ast

from loopcanary.diagnosis.causes.verdict import Finding, Verdict
from loopcanary.diagnosis.code.stack_frames import Role
from loopcanary.diagnosis.code.syntax import expression, is_loop
from loopcanary.diagnosis.culprit.suspect import Suspect
from loopcanary.diagnosis.samples.marks import (
    call_sentence,
    certainty,
    child_words,
    in_file,
    last_name,
    main_target,
    sleep_sentence,
    slept_in,
    target_kind,
    target_words,
    waits_for_event,
)
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.syscalls import (
    CHILD_CALLS,
    FILE_CALLS,
    NETWORK_CALLS,
    POLL_CALLS,
    READ_CALLS,
    SELECT_CALLS,
    SLEEP_CALLS,
    STREAM_CALLS,
    WAIT_CALLS,
    WRITE_CALLS,
)
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Blocker, Cause, TargetKind
from loopcanary.words.sentences import Sentence, say


def _found(
    cause: Cause,
    observation: Observation,
    explained: tuple[WeighedSample, ...],
    otherwise: str,
    *more: Sentence,
    named: float,
    guessed: float,
    topic: str | None = None,
    title: str | None = None,
) -> Finding | None:
    """The finding of samples that wait; None: there are none. `otherwise`: the code of the sentence where the
    kernel named no call; `named`, `guessed`: the confidence where it did, and where it did not."""
    if not explained:
        return None
    return Finding(
        cause=cause,
        share=observation.share(explained),
        confidence=certainty(explained, named=named, guessed=guessed),
        evidence=(
            sleep_sentence(observation, explained, otherwise),
            *more,
            *call_sentence(observation, explained),
        ),
        explained=explained,
        topic=topic,
        title=title,
    )


SLEEPING_CALLS = frozenset({"sleep", "nanosleep", "usleep"})


def find_sleep(observation: Observation) -> Finding | None:
    """By the system call; by the text of the call where the kernel named none."""
    explained = observation.select(lambda seen: _sleeps(observation, seen))
    return _found(Cause.SLEEP, observation, explained, "at-sleep", named=0.98, guessed=0.8)


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


READING_CALLS = frozenset({"input", "getpass", "raw_input", "getch", "getwch"})
_STDIN = 0


def find_terminal(observation: Observation) -> Finding | None:
    """By what the descriptor is; where that is not known, by `input` and its kin, or a read of descriptor 0,
    unless it is known to be something else."""
    explained = observation.select(lambda seen: _waits_at_terminal(observation, seen))
    writes = [seen for seen in explained if seen.syscall in WRITE_CALLS]
    direction = "terminal-output" if 2 * len(writes) > len(explained) else "terminal-input"
    # The table of remedies has rows for `input` and its kin.
    is_known = any(last_name(observation.callee(seen)) in READING_CALLS for seen in explained)
    return _found(
        Cause.DISK_IO,
        observation,
        explained,
        "at-terminal",
        say(direction),
        named=0.92,
        guessed=0.8,
        topic=None if is_known else direction,
        title=direction,
    )


def _waits_at_terminal(observation: Observation, seen: WeighedSample) -> bool:
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


CHILD_WAITING_CALLS = frozenset(
    {"waitpid", "wait3", "wait4", "waitid", "system", "waitForStarted", "waitForFinished"}
)
"""Calls that wait for a child; the last two are QProcess's."""
STARTING_CALLS = frozenset({"fork", "forkpty", "posix_spawn", "posix_spawnp", "spawnv", "spawnve", "spawnl"})
"""These work rather than wait: a fork of a big process copies its page tables."""

_OWNERS = ("", "os", "posix", "pty")
"""Of STARTING_CALLS: `repo.fork()` starts no process."""


def find_child(observation: Observation) -> Finding | None:
    """By a wait for children, by frames of subprocess, or by a pipe, whose other end is mostly a child's."""
    explained = observation.select(lambda seen: _waits_for_child(observation, seen))
    topic = _pipe_topic(explained)
    return _found(
        Cause.SUBPROCESS,
        observation,
        explained,
        "at-child",
        *_pipe_sentence(explained, topic),
        named=0.95,
        guessed=0.8,
        # With frames of subprocess.py the remedy for these says more.
        topic=None if any(Role.CHILD in seen.stack.path.roles for seen in explained) else topic,
    )


def _waits_for_child(observation: Observation, seen: WeighedSample) -> bool:
    kind = target_kind(seen)
    if kind is TargetKind.CHILD or seen.syscall in CHILD_CALLS or Role.CHILD in seen.stack.path.roles:
        return True
    if kind is TargetKind.PIPE and seen.syscall in READ_CALLS | WRITE_CALLS | WAIT_CALLS:
        return True
    callee = observation.callee(seen) or ""
    owner, _, name = callee.rpartition(".")
    if name in STARTING_CALLS:
        return owner in _OWNERS
    return not seen.on_cpu and name in CHILD_WAITING_CALLS


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
    if in_file(seen, "socket.py") and seen.stack.at(0).shown.function in RESOLVING_CALLS:
        return True
    if seen.on_cpu:  # a thread that computes is seldom at such a call: its source need not be read
        return False
    return Role.NAME in seen.stack.path.roles or last_name(observation.callee(seen)) in RESOLVING_CALLS


SOCKET_CALLS = frozenset(
    {
        *("connect", "connect_ex", "create_connection", "accept", "do_handshake", "urlopen"),
        *("recv", "recv_into", "recvfrom", "recvmsg", "send", "sendall", "sendto", "sendfile"),
    }
)
_NETWORK_FILES = (
    "socket.py",
    "ssl.py",
    "http/client.py",
    "smtplib.py",
    "ftplib.py",
    "imaplib.py",
    "poplib.py",
)


def find_network(observation: Observation) -> Finding | None:
    """By the system call, or any on a socket. OpenSSL reads sockets with `read`, so a `read` under a
    socket's or ssl's frame counts. Where the kernel named no call: by frames and text."""
    explained = observation.select(lambda seen: _waits_for_peer(observation, seen))
    return _found(Cause.NETWORK_IO, observation, explained, "at-socket", named=0.92, guessed=0.65)


def _waits_for_peer(observation: Observation, seen: WeighedSample) -> bool:
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
    return in_file(seen, *_NETWORK_FILES) or last_name(observation.callee(seen)) in SOCKET_CALLS


_IN_A_ROW = 4
"""A sleep that fits so often into the time slept was repeated."""


@dataclass(frozen=True, slots=True)
class Polling:
    """A sleep that was repeated."""

    call: str
    count: int
    """About how often the call was repeated."""
    loop_line: int | None
    """The line of the loop's header; None: it is not in the culprit's function."""


def find_polling(
    observation: Observation, verdict: Verdict, suspect: Suspect | None, blocker: Blocker | None
) -> Polling | None:
    """None where the sleep is not a constant, or not much shorter than the stall."""
    if verdict.first is None or verdict.cause is not Cause.SLEEP or suspect is None or blocker is None:
        return None
    seconds = _constant_sleep(blocker.call or "")
    count = round(verdict.first.share * observation.duration_ns / (seconds * 1e9)) if seconds else 0
    if blocker.call is None or count < _IN_A_ROW or _stayed_asleep(verdict.first.explained, count):
        return None
    loops = [line for line, header in observation.sites.blocks(suspect.view) if is_loop(header)]
    return Polling(blocker.call, count, loops[0] if loops else None)


def _stayed_asleep(samples: tuple[WeighedSample, ...], count: int) -> bool:
    """Whether the thread ran too seldom for that: it runs between sleeps, not while it is stopped in one."""
    spent = [seen.sample.kernel.on_cpu_ns for seen in samples if seen.sample.kernel is not None]
    return len(set(spent)) < min(count, len(spent)) / 2


def _constant_sleep(call: str) -> float | None:
    """The seconds of `time.sleep(0.05)`."""
    try:
        found = expression(call)
    except (SyntaxError, ValueError):
        return None
    match found:
        case ast.Call(
            func=ast.Name(name) | ast.Attribute(attr=name), args=[ast.Constant(int() | float() as seconds)]
        ) if name in SLEEPING_CALLS and seconds > 0:
            return seconds
    return None
