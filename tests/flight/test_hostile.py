"""Any bytes at all: every question is answered or refused by FlightError, in bounded time.

The corpus holds small files that were made to hurt; make_corpus.py writes it and says how.
"""

from __future__ import annotations

import json
import os
import random
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.building.evidence import BEGIN, MS, going_on, sample, stall, turn
from tests.building.flight_file import FlightBuilder, SlotBuilder
from tests.flight import make_corpus

from loopcanary.flight import FlightError, FlightFile, Liveness, liveness
from loopcanary.flight import format as layout
from loopcanary.flight.format import ClockKind, ProcessState, SectionKind, SlotState, TakenBy
from loopcanary.model import Collection, LockProof, LockView, Stack, StallEvidence, StallScope, ThreadWait

LARGEST = (1 << 63) - 1
EXTREMES = [
    0,
    1,
    2,
    7,
    255,
    256,
    4095,
    4096,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    LARGEST,
    1 << 63,
    (1 << 64) - 1,
]

CORPUS = Path(__file__).parent / "corpus"
NASTY = json.loads((CORPUS / "expected.json").read_text())


def full_flight() -> FlightBuilder:
    """A file with something in every place."""
    flight = FlightBuilder(facts={"name": "shop"}, gc_epoch=1, gc_begin=BEGIN, heartbeat_ns=BEGIN)
    flight.put_counters(samples_taken=3)
    for n in range(3):
        flight.add_collection(
            Collection(begin_ns=BEGIN + n * MS, end_ns=BEGIN + n * MS + 9, tid=41, generation=2)
        )
    for slot_stall in (stall(), going_on(serial=4), turn(serial=5)):
        flight.add_stall(slot_stall)
    flight.put_header(takes=TakenBy.KEEPER)
    flight.put_keeper(taken={2: 5}, text_number=1, text_bytes=6, text=b"a line")
    flight.add_ended(0, epoch=9, turn_epoch=9, begin=BEGIN, end=BEGIN + 200 * MS)
    flight.put_histogram(0, {0: 1, 5: 2, layout.HISTOGRAM_BUCKETS - 1: 1})
    for n in range(3):
        begin = BEGIN - (9 - 2 * n) * MS
        sums = {"turns_before": n, "callbacks_before": 9 * n, "busy_ticks_before": n * MS}
        flight.add_long_work(
            0, sequence=n + 1, begin=begin, end=begin + MS, callbacks=1, name=b"refresh", **sums
        )
    return flight


FULL = bytes(full_flight())
SLOTS_AT = 28672 + 4 * layout.LANE_BYTES
KEEPER_AT = 8 * layout.KEEPER_ALIGNMENT
LONG_WORK_AT = 28672 + layout.LONG_WORK_OFFSET
REGIONS = {
    "header": (0, layout.HEADER.size),
    "facts": (4096, 4096 + 16),
    "collections": (4096 + 16384 + 4096, 4096 + 16384 + 4096 + 192),
    "long work": (LONG_WORK_AT, LONG_WORK_AT + layout.LONG_WORK.size * 3),
    "lanes": (28672, 28672 + layout.LANE_BYTES * 4),
    "slot facts": (SLOTS_AT, SLOTS_AT + 512),
    "slot threads and samples": (SLOTS_AT + 512, SLOTS_AT + 2048 + 3 * 128),
    "keeper": (KEEPER_AT, KEEPER_AT + layout.KEEPER.offsets["room"]),
    "slot heap": (SLOTS_AT + layout.SLOT_HEAP_OFFSET, SLOTS_AT + layout.SLOT_HEAP_OFFSET + 400),
}


def test_the_regions_are_where_the_mutations_think():
    flight = full_flight()

    assert [flight.at(kind) for kind in SectionKind] == [
        *(4096, 20480, 24576, 28672),
        *(SLOTS_AT, KEEPER_AT),
    ]


def ask_everything(data: bytes) -> None:
    try:
        file = FlightFile(data, name="hostile")
    except FlightError as refusal:
        check_line(str(refusal))
        return
    with file:
        check_header(file)
        check_facts(file.facts())
        assert all(0 <= count <= LARGEST for count in file.counters().values())
        assert len(file.collections()) <= 256
        for totals in file.lanes():
            assert 0 <= totals.busy_ns <= LARGEST
            assert len(totals.histogram) <= layout.HISTOGRAM_BUCKETS
        assert file.slot_count <= 64
        for slot in range(file.slot_count):
            check_evidence(file.slot_evidence(slot))
        assert {slot for slot, _ in file.stalls()} <= set(range(file.slot_count))
        for evidence in file.unslotted_stalls():
            check_evidence(evidence)
        check_glances(file)


def check_glances(file: FlightFile) -> None:
    glances = file.glances()
    assert len(glances.look()[0]) <= layout.LANE_COUNT
    lanes, slots = glances.look()
    for lane in lanes:
        times = [lane.threshold_ns, lane.allowance_ns, lane.last_look_ns, lane.turn_callbacks]
        times += [lane.callback_since_ns or 0, lane.turn_since_ns or 0]
        assert all(0 <= number <= LARGEST + 1_000 for number in times)
        repr(lane).encode()
    assert len(slots) <= 64
    for slot in slots:
        check_evidence(file.slot_evidence(slot.index, drained=True))


def check_line(line: str) -> None:
    assert line.isprintable()
    assert line.startswith("hostile: ")


def check_header(file: FlightFile) -> None:
    header = file.header
    assert isinstance(header.state, ProcessState)
    assert isinstance(header.clock_kind, ClockKind)
    assert isinstance(liveness(header), Liveness)
    assert 0 <= file.tick_clock.instant_ns((1 << 64) - 1) <= LARGEST


def check_facts(facts: Any) -> None:
    assert isinstance(facts, dict)
    json.dumps(facts, allow_nan=False, ensure_ascii=False).encode()


def check_evidence(evidence: StallEvidence | None) -> None:
    if evidence is None:
        return
    numbers = [evidence.serial, evidence.tid, evidence.begin_ns, evidence.last_look_ns, evidence.threshold_ns]
    numbers += [evidence.sample_interval_ns, evidence.turn_callbacks, evidence.longest_callback_ns]
    assert all(0 <= number <= LARGEST for number in numbers)
    assert len(evidence.earlier) <= layout.LONG_WORK_COUNT
    for work in evidence.earlier:
        assert 0 <= work.begin_ns <= work.end_ns <= LARGEST
        assert 0 <= work.longest_ns <= LARGEST
    assert evidence.end_ns is None or evidence.begin_ns <= evidence.end_ns <= LARGEST
    times = [reading.at_ns for reading in evidence.samples]
    assert times == sorted(set(times))
    assert len(times) <= layout.SAMPLE_MAX
    assert len(evidence.threads) <= layout.SLOT_THREADS_MAX
    for reading in (*evidence.samples, *evidence.threads):
        check_stack(reading.stack)
    repr(evidence).encode()  # no half of a surrogate pair anywhere


def check_stack(stack: Stack | None) -> None:
    if stack is not None:
        assert len(stack.frames) <= layout.STACK_FRAMES_MAX


def test_the_whole_file_unharmed():
    ask_everything(FULL)


@settings(max_examples=200)
@given(data=st.binary(max_size=6_000))
def test_random_bytes(data):
    ask_everything(data)


@settings(max_examples=100)
@given(data=st.binary(min_size=layout.HEADER.size, max_size=9_000))
def test_random_bytes_after_a_good_beginning(data):
    ask_everything(FULL[:24] + data[24:] + bytes(max(4096 - len(data), 0)))


@pytest.mark.parametrize("region", REGIONS)
@settings(max_examples=80)
@given(data=st.data())
def test_random_changes(region, data):
    begin, end = REGIONS[region]
    harmed = bytearray(FULL)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(begin, end - 1)) & ~3
        value = data.draw(st.sampled_from(EXTREMES) | st.integers(0, (1 << 64) - 1))
        size = data.draw(st.sampled_from(["<B", "<H", "<I", "<Q"]))
        struct.pack_into(size, harmed, at, value & (1 << 8 * struct.calcsize(size)) - 1)
    ask_everything(bytes(harmed))


@settings(max_examples=60)
@given(size=st.integers(0, len(FULL)))
def test_any_length(size):
    ask_everything(FULL[:size])


@pytest.mark.parametrize("field", layout.HEADER.offsets)
def test_every_field_of_the_header_at_every_extreme(field):
    for value in (*EXTREMES, -1):
        raw = (value & (1 << 64) - 1).to_bytes(8, "little")
        at, width = layout.HEADER.offsets[field], layout.HEADER.width(field)
        harmed = bytearray(FULL)
        harmed[at : at + width] = (raw * width)[:width]
        ask_everything(bytes(harmed))


@pytest.mark.parametrize("field", layout.SLOT_FACTS.offsets)
@pytest.mark.parametrize("slot", [0, 1], ids=["ended", "going on"])
def test_every_fact_of_a_slot_at_every_extreme(field, slot):
    at = SLOTS_AT + slot * layout.SLOT_BYTES + layout.SLOT_FACTS.offsets[field]
    width = layout.SLOT_FACTS.width(field)
    harmed = bytearray(FULL)
    for value in EXTREMES:
        harmed[at : at + width] = (value.to_bytes(8, "little") * width)[:width]
        ask_everything(bytes(harmed))


def test_noise_everywhere():
    noise = random.Random(1)  # the same noise each time
    for _ in range(30):
        harmed = bytearray(FULL)
        for _ in range(200):
            harmed[noise.randrange(24, len(harmed))] = noise.randrange(256)
        ask_everything(bytes(harmed))


# ---- files made to hurt --------------------------------------------------------------------


@pytest.mark.parametrize("name", NASTY)
def test_corpus(name):
    data = (CORPUS / f"{name}.flight").read_bytes()
    ask_everything(data)
    ask_everything(data.ljust(512 << 10, b"\0"))


@pytest.mark.parametrize("name", [name for name, refusal in NASTY.items() if refusal])
def test_corpus_refusals(name):
    data = (CORPUS / f"{name}.flight").read_bytes()
    # Its zeros at the end are not kept; those that are cut on purpose stay below a header's size.
    whole = data if "cut short" in NASTY[name] or not data else data.ljust(512 << 10, b"\0")

    with pytest.raises(FlightError, match=re.escape(NASTY[name])):
        FlightFile(whole)


def test_the_corpus_is_what_its_maker_makes():
    kept = {path.stem: path.read_bytes() for path in CORPUS.glob("*.flight")}

    assert kept == {name: data.rstrip(b"\0") for name, data, _ in make_corpus.files()}
    assert {name: refusal for name, _, refusal in make_corpus.files()} == NASTY


def one_slot() -> tuple[FlightBuilder, SlotBuilder]:
    flight = FlightBuilder(slot_room=1)
    flight.add_stall(stall(samples=(), threads=()))
    return flight, SlotBuilder.resumed(flight.data, flight.at(SectionKind.SLOTS))


def test_stacks_that_overlap_do_not_multiply():
    """384 stacks of 256 frames, all in the same bytes: 98,304 frames out of 80 KB."""
    flight, slot = one_slot()
    code = slot.store(layout.CODE.struct.pack(bytes(8), bytes(8), 1, 0))
    # A frame that, read as a stack's head, claims 256 frames.
    offset = slot.store(layout.FRAME.struct.pack(code, 1, 1, 1, 1) * 4096)
    assert code > layout.STACK_FRAMES_MAX
    for n in range(layout.SAMPLE_MAX):
        slot.put_sample(n, sample(n), 5)
        at = flight.at(SectionKind.SLOTS) + layout.SLOT_SAMPLES_OFFSET + n * layout.SAMPLE.size
        struct.pack_into("<I", flight.data, at + layout.SAMPLE.offsets["stack"], offset + 16 * n)

    evidence = FlightFile(bytes(flight)).slot_evidence(0)

    assert evidence is not None
    frames = {id(reading.stack): len(reading.stack.frames) for reading in evidence.samples if reading.stack}
    assert sum(frames.values()) <= layout.SLOT_BYTES // layout.FRAME.size


@pytest.mark.parametrize(
    "stack",
    [1, layout.SLOT_HEAP_OFFSET - 16, layout.SLOT_BYTES - 4, layout.SLOT_BYTES, (1 << 32) - 1],
    ids=["in the facts", "in the samples", "over the end", "at the end", "far away"],
)
def test_a_stack_outside_of_the_heap_is_no_stack(stack):
    flight, slot = one_slot()
    slot.put_sample(0, sample(1, stack=None), 5)
    at = flight.at(SectionKind.SLOTS) + layout.SLOT_SAMPLES_OFFSET + layout.SAMPLE.offsets["stack"]
    struct.pack_into("<I", flight.data, at, stack)

    evidence = FlightFile(bytes(flight)).slot_evidence(0)

    assert evidence is not None
    assert [reading.stack for reading in evidence.samples] == [None]


def test_what_lies_beyond_the_heaps_used_part_is_not_read():
    flight, slot = one_slot()
    slot.put_sample(0, sample(1), 5)
    slot.put(heap_used=layout.SLOT_HEAP_OFFSET)

    evidence = FlightFile(bytes(flight)).slot_evidence(0)

    assert evidence is not None
    assert (evidence.samples[0].stack, evidence.names, evidence.scene) == (None, None, None)


@pytest.mark.parametrize("step", [0, 1, -16], ids=["itself", "half of itself", "one behind it"])
def test_names_of_threads_only_refer_to_what_comes_before_them(step):
    flight, slot = one_slot()
    last = slot.store(struct.pack("<II", 9, 0) + bytes(8))
    struct.pack_into("<I", flight.data, flight.at(SectionKind.SLOTS) + last + 4, last - step)
    slot.put(thread_names=last)

    evidence = FlightFile(bytes(flight)).slot_evidence(0)

    assert evidence is not None
    assert evidence.thread_names == ((9, ""),)


@pytest.mark.parametrize("step", [0, 1, -32], ids=["itself", "half of itself", "one behind it"])
def test_waits_only_refer_to_what_comes_before_them(step):
    flight, slot = one_slot()
    slot.put_wait(ThreadWait(tid=9, lock=LockView(kind="lock", proof=LockProof.WITH), holder_tid=9))
    last = layout.SLOT_FACTS.read(flight.data, flight.at(SectionKind.SLOTS))["circle"]
    struct.pack_into("<I", flight.data, flight.at(SectionKind.SLOTS) + last + 4, last - step)

    evidence = FlightFile(bytes(flight)).slot_evidence(0)

    assert evidence is not None
    assert [(wait.tid, wait.holder_tid) for wait in evidence.circle] == [(9, 9)]


def test_a_stack_with_too_few_frames_is_truncated():
    flight, slot = one_slot()
    code = slot.store(layout.CODE.struct.pack(bytes(8), bytes(8), 1, 0))
    offset = slot.store(layout.STACK.struct.pack(99, 0, 1) + layout.FRAME.struct.pack(code, 7, 7, 1, 2))
    slot.put_sample(0, sample(1, stack=None), 5)
    at = flight.at(SectionKind.SLOTS) + layout.SLOT_SAMPLES_OFFSET + layout.SAMPLE.offsets["stack"]
    struct.pack_into("<I", flight.data, at, offset)

    evidence = FlightFile(bytes(flight)).slot_evidence(0)

    assert evidence is not None
    stack = evidence.samples[0].stack
    assert stack is not None
    assert ([(f.qualname, f.line) for f in stack.frames], stack.truncated) == ([("?", 7)], True)


def test_bad_utf8_gets_marks_controls_are_kept():
    flight, slot = one_slot()
    raw = b"a\xff\x1b[31m\0\xed\xa0\x80"
    ref = layout.REF.struct.pack(slot.store(raw), len(raw))
    slot.put(callback=ref, work_read_ns=1, task=bytes(8), thread_name=b"\xc3(", scene=ref)

    evidence = FlightFile(bytes(flight)).slot_evidence(0)

    assert evidence is not None
    assert evidence.names is not None
    assert evidence.names.name == evidence.scene == "a\ufffd\x1b[31m\0\ufffd\ufffd\ufffd"
    assert evidence.thread_name == "\ufffd("


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 16_000,
        b'{"a":' * 3_000,
        b"[1, 2]",
        b"null",
        b'{"a": ' + b"9" * 5_000 + b"}",
        b'{"a": NaN',
        b"\xff\xfe",
    ],
    ids=["deep list", "deep object", "a list", "null", "a long number", "cut", "no UTF-8"],
)
def test_facts_that_are_none(text):
    flight = FlightBuilder()
    flight.put_facts(text)

    assert FlightFile(bytes(flight)).facts() == {}


def test_facts_are_made_fit_to_be_stored():
    flight = FlightBuilder()
    flight.put_facts(
        b'{"nan": NaN, "inf": -Infinity, "big": 99999999999999999999, "half": "\\ud800x", "\\udfff": 1,'
        b' "deep": [[[[[[[[[1]]]]]]]]]}'
    )

    assert FlightFile(bytes(flight)).facts() == {
        "nan": None,
        "inf": None,
        "big": LARGEST,
        "half": "?x",
        "?": 1,
        "deep": [[[[[[[None]]]]]]],
    }


def test_facts_that_claim_to_be_longer_than_their_section():
    flight = FlightBuilder(facts={"a": 1})
    flight.put_section(SectionKind.FACTS, used=(1 << 64) - 1)

    assert FlightFile(bytes(flight)).facts() == {}  # the zeros behind the text are no JSON


@pytest.mark.skipif(os.name != "posix", reason="needs sparse files")
def test_the_largest_file_costs_no_more_than_its_bounds(tmp_path):
    """64 MiB of slots and lanes that all claim to be full."""
    flight = full_flight()
    stride = layout.SLOT_HEAP_OFFSET
    for kind, used_stride in ((SectionKind.SLOTS, stride), (SectionKind.LANES, layout.LANE.size)):
        flight.put_section(kind, offset=SLOTS_AT, stride=used_stride, count=1 << 60, used=1 << 60)
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write(bytes(flight))
        file.truncate(64 << 20)
    with FlightFile.open(path) as opened:
        assert opened.slot_count == 64
        assert len(opened.stalls()) <= 64
        assert len(opened.lanes()) <= 1024
        opened.unslotted_stalls()


def test_states_and_kinds_that_do_not_exist():
    flight = FlightBuilder()
    flight.add_stall(stall(), state=SlotState.ENDED)
    flight.put_slot(0, kind=77, state=9)

    assert FlightFile(bytes(flight)).slot_evidence(0) is None

    flight.put_slot(0, state=SlotState.ENDED)
    evidence = FlightFile(bytes(flight)).slot_evidence(0)
    assert evidence is not None
    assert evidence.scope is StallScope.CALLBACK
