"""Perfetto's own format: a Trace of packets with track descriptors and track events.

Written with Perfetto's library, in the way of perfetto.dev/docs/reference/synthetic-track-event. Times are
wall-clock times in nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    BUILTIN_CLOCK_BOOTTIME,
    BUILTIN_CLOCK_REALTIME,
    TrackDescriptor,
    TrackEvent,
)
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from loopcanary.exporters.formats import Format
from loopcanary.exporters.source import Exported
from loopcanary.exporters.texts import int64
from loopcanary.exporters.trace import Slice, Track, draw

_SEQUENCE = 1
"""All packets are of one writer."""
_PROCESS = 1 << 63
"""Added to a pid: the uuid of its track."""


def write(exported: Exported, out: IO[bytes]) -> None:
    writer = _PacketWriter(out, exported.origin_wall_ns)
    writer.begin()
    draw(exported, writer)


class _PacketWriter:
    def __init__(self, out: IO[bytes], origin_wall_ns: int) -> None:
        self._builder = StreamingTraceProtoBuilder(out)
        self._origin_wall_ns = origin_wall_ns

    def begin(self) -> None:
        """Says that both clocks, the trace's and the wall's, are the same."""
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        for clock in (BUILTIN_CLOCK_BOOTTIME, BUILTIN_CLOCK_REALTIME):
            packet.clock_snapshot.clocks.add(clock_id=clock, timestamp=self._time(0))
        self._builder.write_packet(packet)

    def process(self, pid: int, name: str) -> None:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.track_descriptor.uuid = _PROCESS + pid
        packet.track_descriptor.process.pid = pid
        packet.track_descriptor.process.process_name = name
        self._builder.write_packet(packet)

    def track(self, track: Track) -> None:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        descriptor = packet.track_descriptor
        descriptor.uuid = track.number
        descriptor.child_ordering = TrackDescriptor.EXPLICIT
        descriptor.sibling_order_rank = track.number
        if track.parent is None:
            descriptor.parent_uuid = _PROCESS + track.pid
            descriptor.thread.pid = track.pid
            descriptor.thread.tid = track.number
            descriptor.thread.thread_name = track.name
        else:
            descriptor.parent_uuid = track.parent
            descriptor.name = track.name
        self._builder.write_packet(packet)

    def slices(self, track: Track, slices: Iterable[Slice]) -> None:
        ends: list[int] = []
        for one in slices:
            while ends and ends[-1] <= one.begin_ns:
                self._end(track, ends.pop())
            self._event(track, TrackEvent.TYPE_SLICE_BEGIN, one)
            ends.append(one.begin_ns + one.length_ns)
        while ends:
            self._end(track, ends.pop())

    def instant(self, track: Track, at_ns: int, name: str, facts: dict[str, Any]) -> None:
        self._event(track, TrackEvent.TYPE_INSTANT, Slice(at_ns, 0, name, "hang", facts))

    def _end(self, track: Track, at_ns: int) -> None:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.timestamp = self._time(at_ns)
        packet.track_event.type = TrackEvent.TYPE_SLICE_END
        packet.track_event.track_uuid = track.number
        self._builder.write_packet(packet)

    def _event(self, track: Track, kind: int, one: Slice) -> None:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.timestamp = self._time(one.begin_ns)
        event = packet.track_event
        event.type = kind
        event.track_uuid = track.number
        event.name = one.name
        if one.category:
            event.categories.append(one.category)
        for key, value in one.facts.items():
            fact = event.debug_annotations.add(name=key)
            if isinstance(value, bool):
                fact.bool_value = value
            elif isinstance(value, int):
                fact.int_value = int64(value)
            elif isinstance(value, float):
                fact.double_value = value
            else:
                fact.string_value = value
        self._builder.write_packet(packet)

    def _time(self, at_ns: int) -> int:
        return int64(max(0, self._origin_wall_ns + at_ns))


FORMAT = Format(name="perfetto", write=write, binary=True)
