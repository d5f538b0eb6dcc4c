"""What a thread waits for where a call on files waits for no disk: an event of the kernel's, or another
program that opens the same fifo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loopcanary.diagnosis.samples.marks import main_target
from loopcanary.diagnosis.samples.syscalls import OPEN_CALLS, READ_CALLS, WAIT_CALLS
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import TargetKind
from loopcanary.words.sentences import Sentence, say

_OF_THE_KERNEL = "anon_inode:"
_EVENTS = {
    "inotify": "event-files",
    "fanotify": "event-files",
    "eventfd": "event-counter",
    "timerfd": "event-timer",
    "signalfd": "event-signal",
}
_ANY_LIBRARYS = ("eventfd", "eventpoll", "io_uring")
"""Libraries poll this for every wait: such a poll says nothing."""


def outside_topic(explained: Sequence[WeighedSample]) -> tuple[str | None, tuple[Sentence, ...]]:
    """What the advice is about, and a sentence of evidence; nothing where most samples waited for a file."""
    events = [seen for seen in explained if waits_for_event(seen)]
    if 2 * len(events) > len(explained):
        return "kernel-event", (say(_EVENTS.get(_event(events), "event-other")),)
    opens = [seen for seen in explained if seen.syscall in OPEN_CALLS and seen.state == "S"]
    if 2 * len(opens) > len(explained):
        return "slow-open", (say("open-asleep"),)
    return None, ()


def waits_for_event(seen: WeighedSample) -> bool:
    """Whether it is a read of what the kernel made for events, or a poll of one."""
    name = _event([seen])
    return bool(name) and (
        seen.syscall in READ_CALLS or (seen.syscall in WAIT_CALLS and name not in _ANY_LIBRARYS)
    )


def _event(selected: Iterable[WeighedSample]) -> str:
    """`inotify` of `anon_inode:inotify`, `timerfd` of `anon_inode:[timerfd]`; empty for anything else."""
    target = main_target(selected)
    if target is None or target.kind is not TargetKind.OTHER or not target.name.startswith(_OF_THE_KERNEL):
        return ""
    return target.name.removeprefix(_OF_THE_KERNEL).strip("[]")
