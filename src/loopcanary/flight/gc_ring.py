"""Garbage collections: the last ones, and the one that runs now."""

from __future__ import annotations

from collections.abc import Iterable

from loopcanary.flight import format as layout
from loopcanary.flight.header import FlightHeader, Section, bounded
from loopcanary.flight.rings import whole_entries
from loopcanary.flight.source import ByteSource
from loopcanary.model import Collection


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
    """Those with a part in [begin, end]. One that still runs is given as lasting to `end_ns`."""
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
