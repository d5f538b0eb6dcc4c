"""What several rules look for in a sample: a call by its name, a file of the standard library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from loopcanary.diagnosis.code.ownership import Owner
from loopcanary.diagnosis.code.stack_frames import PlacedFrame
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.syscalls import OPEN_CALLS, READ_CALLS, WAIT_CALLS
from loopcanary.diagnosis.samples.views import WeighedSample, count_views
from loopcanary.model import GilState, Target, TargetKind
from loopcanary.model.loop_frames import tail
from loopcanary.words.sentences import Sentence, say


def last_name(callee: str | None) -> str:
    """`socket.create_connection` -> `create_connection`; empty where there is no call."""
    return "" if callee is None else callee.rpartition(".")[2]


def is_file(view: PlacedFrame, *places: str) -> bool:
    """Whether a frame lies in one of the files: `socket.py` of the standard library, or `http/client.py`."""
    if view.owner is Owner.OWN:
        return False
    place = tail(view.shown.file)
    name = place.rpartition("/")[2]
    return place in places or (view.owner is Owner.STDLIB and name in places)


def in_file(seen: WeighedSample, *places: str) -> bool:
    return seen.innermost is not None and is_file(seen.innermost, *places)


def target_kind(seen: WeighedSample) -> TargetKind | None:
    """What the system call works on; None where the kernel did not say."""
    return None if seen.sample.target is None else seen.sample.target.kind


def released_gil(seen: WeighedSample) -> bool:
    """Whether the thread did without the GIL: only C code can, and Python code cannot run meanwhile."""
    return seen.sample.gil in (GilState.FREE, GilState.OTHER)


def main_target(selected: Iterable[WeighedSample]) -> Target | None:
    """What the samples waited for, by weight; None where none says."""
    held: dict[Target, int] = {}
    for seen in [seen for seen in selected if seen.sample.target is not None]:
        target = seen.sample.target
        if target is not None and (target.name or target.kind is not TargetKind.OTHER):
            held[target] = held.get(target, 0) + max(1, seen.weight_ns)
    return max(held, key=lambda target: held[target]) if held else None


def target_words(target: Target | None) -> Sentence | None:
    """`of /var/lib/x.db`, `with peer 10.0.0.5:5432`: what follows the name of a system call."""
    if target is None:
        return None
    name = target.name
    match target.kind:
        case TargetKind.FILE:
            return say("of-name", name=name) if name else say("of-file")
        case TargetKind.SOCKET:
            return say("with-peer", name=name) if name else say("on-socket")
        case TargetKind.PIPE:
            return say("on-pipe", child=child_words(target) if target.pid else None)
        case TargetKind.TERMINAL:
            return say("of-terminal", name=name)
        case TargetKind.CHILD:
            return say("for-child", child=child_words(target))
    return say("of-name", name=name) if name else None


def child_words(target: Target) -> Sentence:
    """`child 4711 (ffmpeg)`."""
    command = say("in-brackets", name=target.name) if target.name else None
    return say("child", pid=target.pid, command=command) if target.pid else say("some-child", command=command)


def slept_in(seen: Iterable[WeighedSample]) -> list[str]:
    """The names of the three most frequent system calls of samples."""
    counts: Counter[str] = Counter()
    for view, count in count_views(seen):
        if view.syscall is not None:
            counts[view.syscall] += count
    return [name for name, _ in counts.most_common(3)]


def sleep_sentence(observation: Observation, selected: tuple[WeighedSample, ...], otherwise: str) -> Sentence:
    """`12 of 12 samples slept in fsync of /var/lib/x.db.`; `otherwise`: the code where the kernel named no
    call."""
    named = [seen for seen in selected if seen.view.syscall is not None]
    if not named:
        return say(otherwise, some=observation.of_all(selected))
    target = target_words(main_target(named))
    return say("slept", some=observation.of_all(named), calls=slept_in(named), target=target)


def call_sentence(observation: Observation, selected: tuple[WeighedSample, ...]) -> tuple[Sentence, ...]:
    """`The innermost call was time.sleep(0.3).`, where one text stands for most of the samples."""
    texts: Counter[str] = Counter()
    for view, count in count_views(selected):
        text = observation.sites.of(view.stack.at(0)).text if view.stack else None
        if text is not None:
            texts[text] += count
    if not texts:
        return ()
    text, count = texts.most_common(1)[0]
    return (say("call", call=text),) if 2 * count >= len(selected) else ()


def certainty(selected: tuple[WeighedSample, ...], *, named: float, guessed: float) -> float:
    """Confidence by how many of the samples have a system call named by the kernel."""
    if not selected:
        return guessed
    named_count = sum([count for view, count in count_views(selected) if view.syscall is not None])
    known = named_count / len(selected)
    return guessed + (named - guessed) * known


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
