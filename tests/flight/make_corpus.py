"""Writes tests/flight/corpus: small files that are made to hurt a reader, each with what must become of it.

    python -m tests.flight.make_corpus

A file is kept without the zeros at its end; the test reads it as kept, and with 512 KiB of zeros behind.
Larger ones (stacks that overlap, sparse files) are made by test_hostile.py when it runs.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

from tests.building.flight_file import FlightBuilder

from loopcanary.flight import format as layout
from loopcanary.flight.format import SectionKind, SlotState

FOLDER = Path(__file__).parent / "corpus"
ONES = (1 << 64) - 1


def small(**header: object) -> FlightBuilder:
    return FlightBuilder(lane_room=0, slot_room=0, **header)


def sections_at(kind_offsets: dict[SectionKind, int], **fields: int) -> FlightBuilder:
    flight = small()
    for kind, offset in kind_offsets.items():
        flight.put_section(kind, offset=offset, **fields)
    return flight


def all_lanes_and_slots_in_the_same_place() -> FlightBuilder:
    flight = small()
    flight.put_section(SectionKind.LANES, offset=4096, stride=layout.LANE.size, count=ONES, used=ONES)
    flight.put_section(SectionKind.SLOTS, offset=4096, stride=layout.SLOT_HEAP_OFFSET, count=ONES, used=ONES)
    return flight


def a_slot_that_counts_beyond_everything() -> FlightBuilder:
    flight = small()
    flight.put_section(SectionKind.SLOTS, offset=4096, stride=layout.SLOT_BYTES, count=1)
    facts = {name: ONES for name, code in layout.SLOT_FACTS.codes.items() if code == "Q"}
    facts |= {"state": SlotState.STALL, "kind": 1, "begin_ns": 1, "lane": 0}
    for name, value in facts.items():
        struct.pack_into("<Q", flight.data, 4096 + layout.SLOT_FACTS.offsets[name], value)
    return flight


def a_lane_of_ones() -> FlightBuilder:
    flight = small(tick_ns_q32=ONES)
    flight.put_section(SectionKind.LANES, offset=4096, stride=layout.LANE.size, count=1, used=1)
    flight.data[4096 : 4096 + layout.LANE.size] = b"\xff" * layout.LANE.size
    struct.pack_into("<Q", flight.data, 4096 + layout.LANE.offsets["state"], 1)
    return flight


def facts_of_brackets() -> FlightBuilder:
    flight = small()
    flight.put_facts(b'{"a":[' * 600)
    return flight


def files() -> Iterator[tuple[str, bytes, str | None]]:
    """(name, contents, words of the refusal; None: it is read)."""
    header = bytes(small())
    yield "empty", b"", "is empty"
    yield "magic-alone", layout.MAGIC, "is cut short to 8 bytes"
    yield "half-a-header", header[:100], "is cut short to"
    yield "another-format", b"\x89PNG\r\n\x1a\n" + bytes(8), "it is not a flight file"
    yield "control-characters", b"\x1b[2J\n\r\0\x07" * 3, "it is not a flight file"
    yield "newer", bytes(small(version=7)), "written by a newer loopcanary (format 7)"
    yield "newest", bytes(small(version=(1 << 32) - 1)), "written by a newer loopcanary (format 4294967295)"
    yield "older", bytes(small(version=0)), "has format 0"
    swapped = small(version=1 << 24, byte_order=0x04030201)
    yield "big-endian", bytes(swapped), "another byte order"
    yield "ones-after-the-mark", header[:16] + b"\xff" * 4080, "is damaged: the facts section"
    yield (
        "stride-zero",
        bytes(sections_at({SectionKind.SLOTS: 4096}, count=1, stride=0)),
        "is damaged: the slots",
    )
    huge = sections_at({SectionKind.SLOTS: 4096}, count=1, stride=1 << 62)
    yield "stride-huge", bytes(huge), "elements of 4611686018427387904 bytes"
    everywhere = dict.fromkeys(SectionKind, ONES - 7)
    yield "sections-beyond-the-end", bytes(sections_at(everywhere)), None
    yield "sections-in-the-header", bytes(sections_at(dict.fromkeys(SectionKind, 8))), None
    yield "sections-unaligned", bytes(sections_at(dict.fromkeys(SectionKind, 4099))), None
    yield "sections-in-one-place", bytes(all_lanes_and_slots_in_the_same_place()), None
    yield "slot-of-largest-numbers", bytes(a_slot_that_counts_beyond_everything()), None
    yield "lane-of-ones", bytes(a_lane_of_ones()), None
    yield "facts-of-brackets", bytes(facts_of_brackets()), None
    clock = {
        "tick_ns_q32": ONES,
        "anchor_ticks": ONES,
        "anchor_monotonic_ns": ONES,
        "anchor_wall_ns": -(1 << 63),
    }
    yield "clock-at-its-ends", bytes(small(gc_epoch=1, gc_begin=ONES, **clock)), None
    process = {"pid": ONES, "parent_pid": ONES, "process_start": ONES, "state": ONES, "clock_kind": ONES}
    yield "process-of-ones", bytes(small(**process)), None


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    expected = {}
    for name, data, refusal in files():
        (FOLDER / f"{name}.flight").write_bytes(data.rstrip(b"\0"))
        expected[name] = refusal
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=2) + "\n")


if __name__ == "__main__":
    main()
