"""`traces.txt` of an ANR, as Android writes it or Google Play shows it: the threads of a process, of which
`main` did not respond; and those of it that wait for each other's monitors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from loopcanary.importers.java import local_ns, place_of
from loopcanary.protocols.imports import Blocked, CodePlace, Device, Line, SeenStack, SeenThread

_ANR_MS = 5_000
"""The system declares an ANR after this time without an answer to input."""
_MS = 1_000_000
_BEGIN = re.compile(
    r"-{3,} pid (\d{1,9}) at (\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[+-]\d{4})? -{3,}",
    re.ASCII,
)
_COMMAND = re.compile(r"Cmd ?line: (\S{1,200}).{0,200}")
_THREAD = re.compile(
    r'(?:`{0,3}|[^\W\d]{2,20} \d{1,6} )"(.{0,200})" (?:daemon )?(?:prio=\d{1,3} )?tid=(\d{1,6}) (\w{1,30})'
    r"(?: [^()]{0,120}?(at [^\s()]{3,600} ?\([^()]{0,300}\))| [^()]{0,120}| \([\w ]{1,40}\))?\s*"
)
"""A page copied by hand may have words before and after it, and its first frame."""
_WAITS = re.compile(
    r"\s*- waiting to lock <[^>]{0,60}>(?: \((?:a )?(.{0,200}?)\))?"
    r"(?: held by (?:thread |tid=)(\d{1,6}).{0,80})?\s*"
)
"""Not `waiting on`: a thread in `Object.wait()` has given its monitor back."""
_NATIVE = re.compile(
    r"\s*(?:native: )?#\d\d +pc [0-9a-fx]{1,18} +(\S{1,300})(?: \((?:offset|deleted)[^)]{0,40}\))?"
    r"(?: \((?!BuildId)(.{1,400}?)(?:\+\d+)?\))?(?: \(BuildId[^)]{0,80}\))?\s*"
)
_OTHER = re.compile(r"\s*(?:\||- |at \(|native: |#\d\d |kernel: |\(no managed).{0,500}")
_THREADS_MAX = 300


class _Seen:
    """A thread of the dump."""

    def __init__(self, name: str, tid: int, state: str) -> None:
        self.name, self.tid, self.state = name, tid, state
        self._frames: list[CodePlace] = []
        self._native: list[CodePlace] = []
        self.waits_for: int | None = None
        self.lock = ""

    @property
    def frames(self) -> tuple[CodePlace, ...]:
        """Java frames; native ones where there are none."""
        return tuple(self._frames or self._native)

    def takes(self, text: str) -> bool:
        if found := _WAITS.fullmatch(text):
            self.lock = found[1] or ""
            self.waits_for = int(found[2]) if found[2] else self.waits_for
            return True
        place = place_of(text) if text.lstrip().startswith("at ") else None
        if place is not None:
            self._frames.append(place)
            return True
        if "#" in text and (found := _NATIVE.fullmatch(text)):
            self._native.append(CodePlace("", found[2] or "?", found[1].rpartition("/")[2], 0))
            return True
        return _OTHER.fullmatch(text) is not None


class _Dump:
    """The threads of one process."""

    def __init__(self) -> None:
        self.process = ""
        self.at_ns: int | None = None
        self.numbers: list[int] = []
        self.threads: list[_Seen] = []

    def takes(self, text: str) -> bool:
        if "line: " in text and (found := _COMMAND.fullmatch(text)):
            self.process = found[1]
            return True
        if "tid=" in text and (found := _THREAD.fullmatch(text)):
            self.threads.append(_Seen(found[1], int(found[2]), found[3]))
            return found[4] is None or self.threads[-1].takes(found[4])
        return bool(self.threads) and self.threads[-1].takes(text)


class TracesImporter:
    words = "traces.txt of an ANR, or what Google Play shows of it: the threads of a process"

    def find(self, lines: Sequence[Line], *, near_wall_ns: int) -> Iterator[Blocked]:  # noqa: ARG002 - dated
        dump = _Dump()
        for number, text in lines:
            if " pid " in text and (found := _BEGIN.fullmatch(text.strip())):
                yield from _blocked(dump)
                dump = _Dump()
                dump.at_ns = local_ns(*map(int, found.groups()[1:]))
                dump.numbers.append(number)
            elif dump.takes(text):
                dump.numbers.append(number)
        yield from _blocked(dump)


def _blocked(dump: _Dump) -> Iterator[Blocked]:
    main = next((thread for thread in dump.threads if thread.name == "main" and thread.frames), None)
    if main is None:
        return
    yield Blocked(
        tool="traces.txt",
        lines=tuple(dump.numbers),
        device=Device(process=dump.process),
        began_wall_ns=None if dump.at_ns is None else dump.at_ns - _ANR_MS * _MS,
        duration_ns=_ANR_MS * _MS,
        is_least=True,
        stacks=(SeenStack(frames=main.frames),),
        threads=tuple(
            SeenThread(name=one.name, state=one.state, frames=one.frames)
            for one in dump.threads[:_THREADS_MAX]
            if one is not main
        ),
        notes=tuple(_notes(main, {one.tid: one for one in dump.threads})),
    )


def _notes(main: _Seen, threads: dict[int, _Seen]) -> Iterator[str]:
    """The main thread's state, and the chain of threads that it waits for."""
    yield f"Thread main was {main.state}."
    at, seen = main, [main]
    while at.waits_for is not None and (holder := threads.get(at.waits_for)) is not None:
        lock = f"a {at.lock}" if at.lock else "a monitor"
        yield f"Thread {at.name} waited for {lock}, which thread {holder.name} held."
        if holder in seen:
            names = ", ".join(one.name for one in seen[seen.index(holder) :])
            yield f"They wait for each other and never go on, a deadlock: {names}."
            return
        seen.append(holder)
        at = holder


TRACES = TracesImporter()
