"""What several rules look for in a sample: a call by its name, a file of the standard library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from loopcanary.diagnosis.frames import PlacedFrame
from loopcanary.diagnosis.observation import Observation, Seen
from loopcanary.diagnosis.ownership import Owner
from loopcanary.diagnosis.plumbing import tail


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


def in_file(seen: Seen, *places: str) -> bool:
    """Whether the innermost frame of a sample lies in one of the files."""
    return seen.innermost is not None and is_file(seen.innermost, *places)


def slept_in(seen: Iterable[Seen]) -> str:
    """The system calls of samples, most frequent first: `futex`, or `recvfrom and poll`."""
    counts = Counter(entry.syscall for entry in seen if entry.syscall is not None)
    names = [name for name, _ in counts.most_common(3)]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def sleep_sentence(observation: Observation, selected: tuple[Seen, ...], otherwise: str) -> str:
    """`12 of 12 samples slept in clock_nanosleep.`; `otherwise` ends it where the kernel named no call."""
    named = [seen for seen in selected if seen.syscall is not None]
    if not named:
        return f"{observation.of_all(selected)} {otherwise}."
    return f"{observation.of_all(named)} slept in {slept_in(named)}."


def call_sentence(observation: Observation, selected: tuple[Seen, ...]) -> tuple[str, ...]:
    """`The innermost call was time.sleep(0.3).`, where one text stands for most of the samples."""
    texts = Counter(text for seen in selected if (text := observation.site(seen).text) is not None)
    if not texts:
        return ()
    text, count = texts.most_common(1)[0]
    return (f"The innermost call was `{text}`.",) if 2 * count >= len(selected) else ()


def certainty(selected: tuple[Seen, ...], *, named: float, guessed: float) -> float:
    """Confidence by how many of the samples have a system call named by the kernel."""
    if not selected:
        return guessed
    known = sum(seen.syscall is not None for seen in selected) / len(selected)
    return guessed + (named - guessed) * known
