"""pprof: a gzip-compressed Profile of stalled time (github.com/google/pprof, proto/profile.proto).

A sample has four values: `samples` and `stalled` of what was sampled, `calls` and `time` of traced calls. Of
each stack one pair is 0, and pprof shows one value at a time, so that the two never add up.

The export is written in pieces, each a Profile: readers join the lists of messages that follow each other.
So the exporter keeps no more than the numbers of strings, functions and lines.
"""

from __future__ import annotations

import gzip
from typing import IO, Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from loopcanary.exporters import Exported, Format
from loopcanary.exporters.exact_calls import exact_calls
from loopcanary.exporters.spans import weights
from loopcanary.exporters.texts import frame_name, whole
from loopcanary.model import StackFrame, Stall

PACKAGE = "perftools.profiles"
# The messages that are used here, for the protobuf library: field, number, type; `*` repeated. The code that
# protoc generates works with some versions of the library only. Tests hold this table to the published file.
MESSAGES = {
    "Profile": (
        ("sample_type", 1, "*ValueType"),
        ("sample", 2, "*Sample"),
        ("mapping", 3, "*Mapping"),
        ("location", 4, "*Location"),
        ("function", 5, "*Function"),
        ("string_table", 6, "*string"),
        ("time_nanos", 9, "int64"),
        ("duration_nanos", 10, "int64"),
        ("comment", 13, "*int64"),
        ("default_sample_type", 14, "int64"),
    ),
    "ValueType": (("type", 1, "int64"), ("unit", 2, "int64")),
    "Sample": (("location_id", 1, "*uint64"), ("value", 2, "*int64"), ("label", 3, "*Label")),
    "Label": (("key", 1, "int64"), ("str", 2, "int64"), ("num", 3, "int64"), ("num_unit", 4, "int64")),
    "Mapping": (
        ("id", 1, "uint64"),
        ("filename", 5, "int64"),
        ("has_functions", 7, "bool"),
        ("has_filenames", 8, "bool"),
        ("has_line_numbers", 9, "bool"),
    ),
    "Location": (("id", 1, "uint64"), ("mapping_id", 2, "uint64"), ("line", 4, "*Line")),
    "Line": (("function_id", 1, "uint64"), ("line", 2, "int64")),
    "Function": (
        ("id", 1, "uint64"),
        ("name", 2, "int64"),
        ("system_name", 3, "int64"),
        ("filename", 4, "int64"),
    ),
}
_SCALARS = {
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "string": FieldDescriptorProto.TYPE_STRING,
}


def profile_class() -> Any:
    file = FileDescriptorProto(name="profile.proto", package=PACKAGE, syntax="proto3")
    for message, fields in MESSAGES.items():
        added = file.message_type.add(name=message)
        for name, number, kind in fields:
            many, base = kind.startswith("*"), kind.removeprefix("*")
            field = added.field.add(
                name=name,
                number=number,
                label=FieldDescriptorProto.LABEL_REPEATED if many else FieldDescriptorProto.LABEL_OPTIONAL,
            )
            if base in _SCALARS:
                field.type = _SCALARS[base]
            else:
                field.type = FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".{PACKAGE}.{base}"
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.Profile"))


_MAPPING = 1
_INT64_MAX = (1 << 63) - 1
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
        """Declares the values. The first is a count, by pprof's convention."""
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
        piece.time_nanos = _int64(origin_wall_ns)
        return self._taken()

    def tail(self, duration_ns: int) -> bytes:
        """Takes the time from the first stall to the end of the last."""
        self._piece.duration_nanos = _int64(duration_ns)
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
        sample = self._piece.sample.add(value=[_int64(value) for value in values])
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
            location.line.add(function_id=function, line=_int64(frame.line))
        return number

    def _function(self, frame: StackFrame) -> int:
        key = frame_name(frame), whole(frame.file)
        number = self._functions.get(key)
        if number is None:
            number = self._functions[key] = len(self._functions) + 1
            name, file = self._string(key[0]), self._string(key[1])
            self._piece.function.add(id=number, name=name, system_name=name, filename=file)
        return number


def _int64(number: int) -> int:
    """The nearest number of 64 bits: a damaged store may have any."""
    return min(max(number, -_INT64_MAX), _INT64_MAX)


FORMAT = Format(name="pprof", write=write, binary=True)
