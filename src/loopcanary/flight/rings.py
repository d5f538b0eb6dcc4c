"""Reading rings of records that their writer overwrites while we read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from loopcanary.flight import format as layout
from loopcanary.flight.format import Layout
from loopcanary.flight.header import FlightHeader, Section, bounded
from loopcanary.flight.source import ByteSource
from loopcanary.model import Collection

_UNUSED: Final = bytes(8)
"""The sequence, which each kind of entry begins with, of one that was never written, or is being written."""


def whole_entries(
    source: ByteSource, offset: int, entry: Layout, stride: int, count: int
) -> Iterator[dict[str, Any]]:
    """The entries that were not being written, oldest first.

    A writer zeroes an entry's sequence, fills the entry, and stores the sequence last. An entry that
    is the same in two readings, one after the other, was therefore whole in the first.
    """
    first = source.read(offset, stride * count)
    second = source.read(offset, stride * count)
    found = []
    for index in range(count):
        at = index * stride
        if first[at : at + 8] == _UNUSED or first[at : at + entry.size] != second[at : at + entry.size]:
            continue
        fields = entry.read(first, at)
        sequence = fields["sequence"]
        if sequence and (sequence - 1) % count == index:
            found.append(fields)
    found.sort(key=lambda fields: fields["sequence"])
    yield from found


def read_collections(source: ByteSource, section: Section) -> tuple[Collection, ...]:
    """Collections that are over, oldest first."""
    if not section.count:
        return ()
    entries = whole_entries(source, section.offset, layout.GC_ENTRY, section.stride, section.count)
    return tuple(
        Collection(
            begin_ns=bounded(fields["begin_ns"]),
            end_ns=bounded(fields["end_ns"]),
            tid=bounded(fields["tid"]),
            generation=bounded(fields["generation"]),
            collected=bounded(fields["collected"]),
            uncollectable=bounded(fields["uncollectable"]),
        )
        for fields in entries
        if fields["begin_ns"] <= fields["end_ns"]
    )


def overlapping(
    collections: Iterable[Collection], header: FlightHeader, begin_ns: int, end_ns: int
) -> tuple[Collection, ...]:
    """The collections with a part in [begin, end]. A collection that still runs is given as lasting to
    `end_ns`."""
    found = [c for c in collections if c.begin_ns < end_ns and c.end_ns > begin_ns]
    running_since = header.gc_running_since_ns
    if running_since is not None and running_since < end_ns:
        found.append(
            Collection(
                begin_ns=running_since,
                end_ns=end_ns,
                tid=header.gc_running_tid,
                generation=header.gc_running_generation,
            )
        )
    return tuple(found)
