"""disk-io: waiting for a file, or for memory that was swapped out or is read as it is touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.code.stack_frames import PlacedFrame
from loopcanary.diagnosis.samples.marks import (
    call_sentence,
    certainty,
    last_name,
    outside_topic,
    released_gil,
    sleep_sentence,
    target_kind,
    waits_for_event,
)
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.syscalls import FILE_CALLS, STREAM_CALLS
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause, TargetKind
from loopcanary.words.sentences import Sentence, say

SYNCING_CALLS = frozenset({"fsync", "fdatasync", "sync", "syncfs", "msync"})
KERNEL_CALLS = frozenset(
    {
        *(
            "read",
            "readinto",
            "readall",
            "readline",
            "pread",
            "preadv",
            "readv",
            "write",
            "pwrite",
            "pwritev",
        ),
        *("open", "close", "listdir", "scandir", "stat", "lstat", "exists", "truncate", "ftruncate", "flush"),
        *("rename", "replace", "unlink", "remove", "rmdir", "mkdir", "sendfile", "copy_file_range"),
        *("posix_fadvise", "posix_fallocate", "read_bytes", "write_bytes", "statvfs", "link", "symlink"),
    }
)
"""Thin wrappers of system calls on files: what they do without the GIL, the kernel does."""
FILE_TEXT_CALLS = frozenset(
    {
        *SYNCING_CALLS,
        *("open", "read_text", "read_bytes", "write_text", "write_bytes", "readlines", "commit"),
        *("listdir", "scandir", "walk", "rename", "replace", "unlink", "remove", "rmtree", "copyfile"),
        *("copy2", "copytree", "stat", "exists", "is_file", "is_dir", "glob", "mkdir", "makedirs"),
    }
)
_SYNC_SHARE = 0.25
"""Of a call's time, what it must wait for the disk to be the disk's as a whole: a query that computes for
long waits at its end, too."""
_FAULTS_PER_MS = 0.5
_FEWEST_FAULTS = 10
_BUSY = 0.6
_NOT_FILES = (TargetKind.SOCKET, TargetKind.PIPE, TargetKind.TERMINAL, TargetKind.CHILD)


def find_disk(observation: Observation) -> Finding | None:
    """By the state D, or a system call on files; by text if the kernel named no call. A call that only has
    the kernel work on a file counts on a CPU too: the file is in memory then, and the kernel copies it.
    So does the rest of a call that waits until the disk has the data, such as SQLite's commit. Pages that are
    read from disk as they are touched show as major faults."""
    waiting = observation.select(lambda seen: _waits(observation, seen))
    copying = observation.select(lambda seen: _copies(observation, seen))
    syncing, faulting = _syncing(observation), _faulting(observation)
    explained = tuple({id(seen): seen for seen in (*waiting, *copying, *syncing, *faulting)}.values())
    if not explained:
        return None
    sure = [seen for seen in explained if seen.state == "D" or _names_file(seen)]
    named = 0.75 + 0.2 * len(sure) / len(explained)
    return Finding(
        cause=Cause.DISK_IO,
        share=observation.share(explained),
        confidence=certainty(explained, named=named, guessed=0.6 if not sure else 0.7),
        evidence=tuple(_sentences(observation, waiting, copying, syncing, explained)),
        explained=explained,
        topic=outside_topic(explained)[0],
    )


def _names_file(seen: WeighedSample) -> bool:
    """Whether the call is known to be on a file: a `read` or `write` may be on anything."""
    return seen.syscall not in STREAM_CALLS or target_kind(seen) is TargetKind.FILE


def _waits(observation: Observation, seen: WeighedSample) -> bool:
    if seen.state == "D" or waits_for_event(seen):
        return True
    if target_kind(seen) in _NOT_FILES:
        return False
    if seen.syscall in FILE_CALLS:
        return True
    return seen.waits_unseen and last_name(observation.callee(seen)) in FILE_TEXT_CALLS


def _copies(observation: Observation, seen: WeighedSample) -> bool:
    if seen.on_cpu is not True or not seen.stack or not _is_whole(seen):
        return False
    name = last_name(observation.callee(seen))
    return name in SYNCING_CALLS or (name in KERNEL_CALLS and released_gil(seen))


def _syncing(observation: Observation) -> tuple[WeighedSample, ...]:
    """Samples on a CPU, without the GIL, at a call that waits for the disk in others."""
    slept: Counter[PlacedFrame] = Counter()
    ran: dict[PlacedFrame, list[WeighedSample]] = {}
    for seen in observation.seen:
        if seen.innermost is None or not _is_whole(seen):
            continue
        if seen.syscall in SYNCING_CALLS:
            slept[seen.innermost] += seen.weight_ns
        elif seen.on_cpu is True and released_gil(seen):
            ran.setdefault(seen.innermost, []).append(seen)
    found = [(slept[call], running) for call, running in ran.items() if call in slept]
    return tuple(
        seen
        for slept_ns, running in found
        if slept_ns >= _SYNC_SHARE * (slept_ns + sum(seen.weight_ns for seen in running))
        for seen in running
    )


def _is_whole(seen: WeighedSample) -> bool:
    return seen.sample.stack is not None and not seen.sample.stack.inner_cut


def _faulting(observation: Observation) -> tuple[WeighedSample, ...]:
    """Samples around which the thread took many major faults and had little of the CPU."""
    if _major_faults(observation.seen[:1] + observation.seen[-1:]) < _FEWEST_FAULTS:
        return ()
    found: list[WeighedSample] = []
    for left, right in zip(observation.seen, observation.seen[1:], strict=False):
        before, after = left.sample.kernel, right.sample.kernel
        if before is None or after is None:
            continue
        elapsed_ms = (right.sample.at_ns - left.sample.at_ns) / 1e6
        faults = after.major_faults - before.major_faults
        spent_ms = (after.on_cpu_ns - before.on_cpu_ns) / 1e6
        if elapsed_ms > 0 and faults >= _FAULTS_PER_MS * elapsed_ms and spent_ms < _BUSY * elapsed_ms:
            found += [left] if not found or found[-1] is not left else []
            found.append(right)
    return tuple(found)


def _sentences(
    observation: Observation,
    waiting: tuple[WeighedSample, ...],
    copying: tuple[WeighedSample, ...],
    syncing: tuple[WeighedSample, ...],
    explained: tuple[WeighedSample, ...],
) -> Iterator[Sentence]:
    if any(seen.syscall is not None for seen in waiting) or (
        waiting and all(seen.state != "D" for seen in waiting)
    ):
        yield sleep_sentence(observation, waiting, "at-file")
    yield from outside_topic(explained)[1]
    uninterruptible = tuple(seen for seen in waiting if seen.state == "D")
    if uninterruptible:
        yield say("uninterruptible", some=observation.of_all(uninterruptible))
    if copying:
        yield say("copying", some=observation.of_all(copying))
    if syncing:
        yield say("syncing", some=observation.of_all(syncing))
    faults = _major_faults(explained)
    if faults:
        yield say("faults", count=faults)
    yield from call_sentence(observation, explained)


def _major_faults(explained: tuple[WeighedSample, ...]) -> int:
    counts = [seen.sample.kernel.major_faults for seen in explained if seen.sample.kernel is not None]
    return max(counts) - min(counts) if counts else 0
