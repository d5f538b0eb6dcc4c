"""Speedscope (speedscope.app/file-format-schema.json): one profile a watched thread, of its stalled time
alone.

Its stalls follow each other without the time between them, each inside a frame with the stall's name: with
that time, Speedscope's view would be empty for hours. Traced calls are a second profile of the thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import chain, groupby
from typing import IO

from loopcanary.exporters import Exported, Format
from loopcanary.exporters.columns import CsvColumn, Spool
from loopcanary.exporters.exact_calls import NAME, edges, exact_calls
from loopcanary.exporters.spans import stretches
from loopcanary.exporters.texts import encoded, frame_name, name_of, whole
from loopcanary.model import StackFrame, Stall

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


class _FrameNumbers:
    """The frames of all profiles, each with a number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, int], int] = {}

    def number(self, frame: StackFrame) -> int:
        key = (frame_name(frame), whole(frame.file), frame.line)
        return self._numbers.setdefault(key, len(self._numbers))

    def heading(self, stall: Stall) -> int:
        return self._numbers.setdefault((name_of(stall.title), "", 0), len(self._numbers))

    def written(self) -> Iterator[str]:
        for name, file, line in self._numbers:
            frame: dict[str, object] = {"name": name}
            if file:
                frame["file"] = file
            if line > 0:
                frame["line"] = line
            yield encoded(frame)


def write(exported: Exported, out: IO[bytes]) -> None:
    """Writes the profiles, then their frames: the order of an object's members is free."""
    frames = _FrameNumbers()
    out.write(f'{{"$schema":{encoded(SCHEMA)},"exporter":"loopcanary","profiles":['.encode())
    for count, (_, stalls) in enumerate(groupby(exported.stalls, key=_thread_of)):
        out.write(b",\n" if count else b"\n")
        _write_profile(exported, stalls, frames, out)
    out.write(b'],"shared":{"frames":[')
    for count, text in enumerate(frames.written()):
        out.write((b",\n" if count else b"\n") + text.encode("ascii"))
    out.write(b"]}}\n")


def _thread_of(stall: Stall) -> tuple[str, str, str]:
    return stall.session, stall.thread, stall.loop


def _write_profile(
    exported: Exported, stalls: Iterator[Stall], frames: _FrameNumbers, out: IO[bytes]
) -> None:
    first, total_ns = next(stalls), 0
    program = name_of(exported.program(first).name)
    name = f"{program} ({first.pid}), {name_of(first.thread)} ({name_of(first.loop)})"
    head = {"type": "sampled", "name": name, "unit": "nanoseconds", "startValue": 0}
    with closing(Spool()) as spool:
        samples, weights = CsvColumn(spool), CsvColumn(spool)
        calls = _CallEvents(spool, frames)
        for stall in chain((first,), stalls):
            for stretch in stretches(stall):
                samples.add([frames.heading(stall), *map(frames.number, stretch.frames)])
                weights.add(stretch.length_ns)
                total_ns += stretch.length_ns
            calls.add(stall)
        out.write(f'{encoded(head)[:-1]},"endValue":{total_ns},"samples":'.encode("ascii"))
        samples.copy_to(out)
        out.write(b',"weights":')
        weights.copy_to(out)
        out.write(b"}")
        if calls.until_ns:
            calls.write(f"{name}, {NAME}, merged by path", out)


class _CallEvents:
    """The begins and ends of traced calls, one stall after the other."""

    def __init__(self, spool: Spool, frames: _FrameNumbers) -> None:
        self._events = CsvColumn(spool)
        self._frames = frames
        self.until_ns = 0

    def add(self, stall: Stall) -> None:
        calls = exact_calls(stall)
        length_ns = sum(call.length_ns for call in calls if len(call.path) == 1)
        if length_ns:
            self._event(0, self._frames.heading(stall), begins=True)
            for at_ns, frame, begins in edges(calls):
                self._event(at_ns, self._frames.number(frame), begins=begins)
            self._event(length_ns, self._frames.heading(stall), begins=False)
            self.until_ns += length_ns

    def _event(self, at_ns: int, frame: int, *, begins: bool) -> None:
        self._events.add({"type": "O" if begins else "C", "frame": frame, "at": self.until_ns + at_ns})

    def write(self, name: str, out: IO[bytes]) -> None:
        head = {
            "type": "evented",
            "name": name,
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": self.until_ns,
        }
        out.write(f',\n{encoded(head)[:-1]},"events":'.encode("ascii"))
        self._events.copy_to(out)
        out.write(b"}")


FORMAT = Format(name="speedscope", write=write)
