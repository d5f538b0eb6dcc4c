"""pprof: a gzip-compressed Profile of stalled time (github.com/google/pprof, proto/profile.proto).

A sample has four values: `samples` and `stalled` of what was sampled, `calls` and `time` of traced calls. Of
each stack one pair is 0, and pprof shows one value at a time, so that the two never add up.

It is written in pieces, each a Profile: messages one after the other are read as one, lists put together. So
no more is kept than the numbers of strings, functions and lines.
"""

from __future__ import annotations

import gzip
from typing import IO, Any

from loopcanary.exporters.exact_calls import exact_calls
from loopcanary.exporters.formats import Format
from loopcanary.exporters.pprof_messages import profile_class
from loopcanary.exporters.source import Exported
from loopcanary.exporters.spans import weights
from loopcanary.exporters.texts import frame_name, int64, whole
from loopcanary.model import StackFrame, Stall

_MAPPING = 1
_VALUES = (("samples", "count"), ("stalled", "nanoseconds"), ("calls", "count"), ("time", "nanoseconds"))


def write(exported: Exported, out: IO[bytes]) -> None:
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed:
        profile = _Profile()
        packed.write(profile.head(exported.origin_wall_ns))
        latest_wall_ns = exported.origin_wall_ns
        for stall in exported.stalls:
            packed.write(profile.piece(stall, exported.program(stall).name))
            latest_wall_ns = max(latest_wall_ns, stall.began_wall_ns + stall.duration_ns)
        packed.write(profile.tail(latest_wall_ns - exported.origin_wall_ns))


class _Profile:
    def __init__(self) -> None:
        self._class = profile_class()
        self._piece: Any = self._class()
        self._strings: dict[str, int] = {}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[tuple[int, int], int] = {}
        self._string("")  # number 0, by the format

    def head(self, origin_wall_ns: int) -> bytes:
        """What the values are. The first is a count, by pprof's convention."""
        piece = self._piece
        for kind, unit in _VALUES:
            piece.sample_type.add(type=self._string(kind), unit=self._string(unit))
        piece.default_sample_type = self._string("stalled")
        piece.mapping.add(
            id=_MAPPING,
            filename=self._string("python"),
            has_functions=True,
            has_filenames=True,
            has_line_numbers=True,
        )
        piece.comment.append(self._string("Stalled time, by loopcanary."))
        piece.time_nanos = int64(origin_wall_ns)
        return self._taken()

    def tail(self, duration_ns: int) -> bytes:
        """How long it was from the first stall to the end of the last."""
        self._piece.duration_nanos = int64(duration_ns)
        return self._taken()

    def piece(self, stall: Stall, program: str) -> bytes:
        """The samples of one stall, and the tables' new entries."""
        labels = {
            "program": program,
            "thread": stall.thread,
            "loop": stall.loop,
            "scene": stall.scene,
            "cause": stall.cause.value,
            "group": stall.fingerprint,
            "callback": stall.callback,
        }
        told = [(self._string(name), self._string(whole(value))) for name, value in labels.items() if value]
        for frames, length_ns, samples in weights(stall):
            self._add(frames, (samples, length_ns, 0, 0), told)
        for call in exact_calls(stall):
            self._add(call.path, (0, 0, call.calls, call.own_ns), told)
        return self._taken()

    def _add(
        self, frames: tuple[StackFrame, ...], values: tuple[int, ...], labels: list[tuple[int, int]]
    ) -> None:
        sample = self._piece.sample.add(value=[int64(value) for value in values])
        sample.location_id.extend(self._location(frame) for frame in reversed(frames))
        for key, value in labels:
            sample.label.add(key=key, str=value)

    def _taken(self) -> bytes:
        piece, self._piece = self._piece, self._class()
        data: bytes = piece.SerializeToString()
        return data

    def _string(self, text: str) -> int:
        number = self._strings.get(text)
        if number is None:
            number = self._strings[text] = len(self._strings)
            self._piece.string_table.append(text)
        return number

    def _location(self, frame: StackFrame) -> int:
        function = self._function(frame)
        number = self._locations.get((function, frame.line))
        if number is None:
            number = self._locations[function, frame.line] = len(self._locations) + 1
            location = self._piece.location.add(id=number, mapping_id=_MAPPING)
            location.line.add(function_id=function, line=int64(frame.line))
        return number

    def _function(self, frame: StackFrame) -> int:
        key = frame_name(frame), whole(frame.file)
        number = self._functions.get(key)
        if number is None:
            number = self._functions[key] = len(self._functions) + 1
            name, file = self._string(key[0]), self._string(key[1])
            self._piece.function.add(id=number, name=name, system_name=name, filename=file)
        return number


FORMAT = Format(name="pprof", write=write, binary=True)
