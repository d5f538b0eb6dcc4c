"""disk-io: waiting for a file, or for memory that was swapped out."""

from __future__ import annotations

from loopcanary.diagnosis.cause import Finding
from loopcanary.diagnosis.causes.marks import call_sentence, certainty, last_name, sleep_sentence
from loopcanary.diagnosis.observation import Observation, Seen
from loopcanary.diagnosis.syscalls import FILE_CALLS, STREAM_CALLS
from loopcanary.model import Cause

FILE_TEXT_CALLS = frozenset(
    {
        *("open", "fsync", "fdatasync", "read_text", "read_bytes", "write_text", "write_bytes", "readlines"),
        *(
            "listdir",
            "scandir",
            "walk",
            "rename",
            "replace",
            "unlink",
            "remove",
            "rmtree",
            "copyfile",
            "copy2",
        ),
        *("stat", "exists", "is_file", "is_dir", "glob", "mkdir", "makedirs", "commit"),
    }
)


def find_disk(observation: Observation) -> Finding | None:
    """By the state D, or a system call on files; by text where the kernel named no call. A `read` or
    `write` may also be of a pipe or terminal: less certain."""
    explained = observation.select(lambda seen: _waits(observation, seen))
    if not explained:
        return None
    sure = [seen for seen in explained if seen.state == "D" or seen.syscall not in STREAM_CALLS]
    named = 0.75 + 0.2 * len(sure) / len(explained)
    return Finding(
        cause=Cause.DISK_IO,
        share=observation.share(explained),
        confidence=certainty(explained, named=named, guessed=0.6 if not sure else 0.7),
        evidence=tuple(_sentences(observation, explained)),
        explained=explained,
    )


def _waits(observation: Observation, seen: Seen) -> bool:
    if seen.state == "D" or seen.syscall in FILE_CALLS:
        return True
    return seen.waits_unseen and last_name(observation.callee(seen)) in FILE_TEXT_CALLS


def _sentences(observation: Observation, explained: tuple[Seen, ...]) -> list[str]:
    sentences: list[str] = []
    if any(seen.syscall is not None for seen in explained) or all(seen.state != "D" for seen in explained):
        sentences.append(sleep_sentence(observation, explained, "stood at a call on files"))
    waiting = tuple(seen for seen in explained if seen.state == "D")
    if waiting:
        sentences.append(f"{observation.of_all(waiting)} were in uninterruptible sleep (state D).")
    faults = _major_faults(explained)
    if faults:
        sentences.append(f"{faults} pages had to be read from disk (major faults).")
    return [*sentences, *call_sentence(observation, explained)]


def _major_faults(explained: tuple[Seen, ...]) -> int:
    counts = [seen.sample.kernel.major_faults for seen in explained if seen.sample.kernel is not None]
    return max(counts) - min(counts) if counts else 0
