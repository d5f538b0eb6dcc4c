"""Reading rings of records that their writer overwrites while we read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from loopcanary.flight.format import Layout
from loopcanary.flight.source import ByteSource

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
