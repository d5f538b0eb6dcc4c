"""Looks at tasks: what was written is read, the last whole one, and any bytes are answered."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.building.flight_file import FlightBuilder, LookBuilder

from loopcanary.flight import FlightError, FlightFile
from loopcanary.flight import format as layout
from loopcanary.model import Frame
from loopcanary.model.circles import task_circles
from loopcanary.model.outside import TaskState
from loopcanary.model.task_reads import TaskAwait, TaskRead

LOCKS = "/usr/lib/python3.12/asyncio/locks.py"
FIRST_LOCK, SECOND_LOCK = 0x7F10, 0x7F20
LEAVES = "_ContextManagerMixin.__aexit__"


def frame(qualname: str, file: str = "/srv/bank.py", line: int = 7) -> Frame:
    return Frame(qualname=qualname, file=file, line=line, end_line=line, column=5, end_column=9, first_line=3)


def task(name: str, *, holds: int, wants: int, exits: str = LEAVES, number: int = 1) -> TaskRead:
    """One in an `async with` block of one lock that waits for another."""
    return TaskRead(
        address=0x1000 * number,
        name=name,
        loop=0x9000,
        loop_type="_UnixSelectorEventLoop",
        state=2,
        callback="",
        future=0x8000 + number,
        future_type="_asyncio.Future",
        future_callback="",
        end_type="_asyncio.Future",
        cut=False,
        awaits=(
            TaskAwait(frame=frame(name), first=0, held=((holds, LEAVES), (holds + 8, exits))),
            TaskAwait(frame=frame("Lock.acquire", LOCKS), first=wants, held=()),
        ),
        since_ns=number,
    )


PAY = task("pay", holds=FIRST_LOCK, wants=SECOND_LOCK)
REFUND = task("refund", holds=SECOND_LOCK, wants=FIRST_LOCK, number=2)


def built(*tasks: TaskRead) -> FlightBuilder:
    flight = FlightBuilder()
    LookBuilder(flight).put(tasks, circles=1)
    return flight


def test_a_look_is_read_as_it_was_written():
    look = FlightFile(bytes(built(PAY, REFUND))).look()
    assert look is not None
    assert look.reads == (PAY, REFUND)
    assert (look.serial, look.tasks, look.circles) == (1, 2, 1)
    assert [sight.state for sight in look.sights()] == [TaskState.WAITS] * 2
    assert task_circles(look.sights()) == [(0, 1)]


def test_tasks_within_a_timeout_are_in_no_circle():
    for leaves in ("Timeout.__aexit__", "CancelScope.__exit__"):
        ends = task("refund", holds=SECOND_LOCK, wants=FIRST_LOCK, exits=leaves, number=2)
        look = FlightFile(bytes(built(PAY, ends))).look()
        assert look is not None
        assert task_circles(look.sights()) == []


def test_the_last_whole_look_counts():
    flight = FlightBuilder()
    looks = LookBuilder(flight)
    assert FlightFile(bytes(flight)).look() is None
    looks.put([PAY], serial=4)
    looks.put([REFUND], half=1, serial=5)
    file = FlightFile(bytes(flight))
    assert [one.name for one in file.look().reads] == ["refund"]
    assert file.look(after=5) is None
    assert file.look(has_circle=True) is None
    looks.put([REFUND], half=1, serial=0)  # it is being written
    assert [one.name for one in FlightFile(bytes(flight)).look().reads] == ["pay"]


def test_a_file_without_looks_has_none():
    assert FlightFile(bytes(FlightBuilder())).look() is None


FULL = bytes(built(PAY, REFUND))
FROM = len(FULL) - 2 * layout.SLOT_BYTES
PLACES = (
    (layout.HEADER.offsets["looks"], layout.SECTION.size),
    (FROM, layout.SLOT_FACTS.size),
    (FROM + layout.LOOK_OFFSET, layout.LOOK.offsets["entries"] + 3 * layout.LOOK_ENTRY.size),
    (FROM + layout.LOOK_OFFSET + layout.LOOK.size, 1024),
)


@settings(max_examples=300)
@given(st.integers(0, (1 << 32) - 1), st.integers(1, 12))
def test_any_bytes_are_answered_or_refused(seed: int, changes: int):
    data, chance = bytearray(FULL), random.Random(seed)
    for _ in range(changes):
        begin, length = chance.choice(PLACES)
        at = begin + 8 * chance.randrange(length // 8)
        value = chance.choice(
            (0, 1, 64, 1 << 16, (1 << 32) - 1, 1 << 63, (1 << 64) - 1, chance.getrandbits(64))
        )
        data[at : at + 8] = value.to_bytes(8, "little")
    try:
        look = FlightFile(bytes(data)).look()
    except FlightError:
        return
    if look is not None:
        assert len(look.reads) <= layout.LOOK_ENTRIES_MAX
        task_circles(look.sights())
