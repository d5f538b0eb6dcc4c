"""Flight files that come, change, are damaged and go: what a survey of them tells."""

from __future__ import annotations

import fcntl
import gc
import os
import struct
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.building.evidence import BEGIN, going_on, stall
from tests.building.flight_file import FlightBuilder

from loopcanary.assembly.top import Survey
from loopcanary.facts import session_facts
from loopcanary.flight import FlightError, FlightFile
from loopcanary.flight.format import ProcessState, SlotState
from loopcanary.model import Config, StallState
from loopcanary.model.live import Life, ProcessReading, Work

pytestmark = pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="processes are known by /proc")
MS = 1_000_000
Hold = Callable[[Path], Path]


def boot_id() -> bytes:
    return uuid.UUID(Path("/proc/sys/kernel/random/boot_id").read_text().strip()).bytes


def builder(**header: Any) -> FlightBuilder:
    """A file as the parent of this process would have it: one that runs, and is not this one."""
    facts = {**session_facts(Config(name="shop"), engine="native"), "store": "/srv/store"}
    whole = {
        "pid": os.getppid(),
        "process_start": _start_of(os.getppid()),
        "pid_namespace": Path("/proc/self/ns/pid").stat().st_ino,
        "boot_id": boot_id(),
        "heartbeat_ns": BEGIN,
    }
    return FlightBuilder(facts=facts, **{**whole, **header})


def _start_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])


def gone(**header: Any) -> FlightBuilder:
    """That of a process that was killed."""
    return builder(process_start=_start_of(os.getppid()) + 1, **header)


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    folder = tmp_path / "shm"
    folder.mkdir()
    return folder


@pytest.fixture
def survey(memory: Path) -> Iterator[Survey]:
    with Survey((), memory) as made:
        yield made


def put(flight: FlightBuilder, memory: Path, name: str = "a") -> Path:
    return flight.write(memory / f"loopcanary-{os.getuid()}-{name}.flight")


@pytest.fixture
def alive() -> Iterator[Callable[[Path], Path]]:
    """Holds the lock on a file, as the process does that writes it."""
    descriptors = []

    def hold(path: Path) -> Path:
        descriptors.append(os.open(path, os.O_RDWR))
        fcntl.flock(descriptors[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        return path

    yield hold
    for descriptor in descriptors:
        os.close(descriptor)


def one(survey: Survey) -> ProcessReading:
    [reading] = survey.read()
    return reading


def test_nothing_is_there(survey: Survey, tmp_path: Path):
    assert survey.read() == []
    with Survey([tmp_path / "no folder"], tmp_path / "none") as other:
        assert other.read() == []


def test_a_process_that_was_killed_in_a_stall(survey: Survey, memory: Path):
    flight = gone()
    flight.add_stall(going_on())
    put(flight, memory)
    reading = one(survey)
    assert reading.life is Life.KILLED
    assert not reading.is_near
    assert reading.session.name == "shop"
    assert reading.store == "/srv/store"
    [lane] = reading.lanes
    assert lane.in_stall
    assert lane.work == Work(callback="Shop.handle", task="Task-17", scene="checkout")
    assert lane.callback_since_ns == BEGIN
    assert reading.at_ns == BEGIN + 150 * MS  # the last look
    assert reading.last[0].state is StallState.KILLED
    assert reading.last[0].culprit is not None
    assert survey.read() == [reading]


def test_the_last_stall_is_known_after_the_drain_has_taken_it(survey: Survey, memory: Path):
    flight = gone()
    lane = flight.add_lane()
    for serial, begin_ms in ((8, 0), (9, 5_000)):
        shift = begin_ms * MS
        evidence = stall(serial=serial, begin_ns=BEGIN + shift, end_ns=BEGIN + shift + 300 * MS, samples=())
        flight.add_stall(evidence, lane=lane, state=SlotState.FREE)
    put(flight, memory)
    last = one(survey).last[0]
    assert (last.state, last.duration_ns) == (StallState.ENDED, 300 * MS)
    assert last.id.endswith("-9")


def test_a_reused_slot_leaves_the_duration(survey: Survey, memory: Path):
    flight = gone()
    index = flight.add_lane(opened_ns=BEGIN)
    for sequence in range(1, 19):
        flight.add_ended(index, sequence=sequence, begin=BEGIN, end=BEGIN + (100 + sequence) * MS)
    earlier = flight.add_lane(opened_ns=BEGIN + 1_000 * MS)
    flight.add_ended(earlier, begin=BEGIN, end=BEGIN + 200 * MS)
    put(flight, memory)
    assert [lane.latest_stall_ns for lane in one(survey).lanes] == [118 * MS, None]


def test_work_that_ended_in_time_is_no_stall(survey: Survey, memory: Path):
    flight = gone()
    lane = flight.add_lane()
    flight.add_stall(going_on(), lane=lane, state=SlotState.FREE)
    put(flight, memory)
    assert one(survey).last == {}


def test_an_earlier_owners_slot_is_not_this_lanes(survey: Survey, memory: Path):
    flight = gone()
    lane = flight.add_lane(generation=2)
    flight.add_stall(going_on(), lane=lane)
    put(flight, memory)
    reading = one(survey)
    assert reading.last == {}
    assert not reading.lanes[0].in_stall


def test_changes_are_seen(survey: Survey, memory: Path, alive: Hold):
    flight = builder()
    lane = flight.add_lane(turns=1, busy_ticks=5 * MS)
    path = alive(put(flight, memory))
    assert one(survey).lanes[0].totals.busy_ns == 5 * MS
    flight.put_lane(
        lane, turns=2, busy_ticks=9 * MS, turn_epoch=3, turn_begin=BEGIN, epoch=5, begin=BEGIN + 7
    )
    _write_over(path, bytes(flight))
    now = one(survey).lanes[0]
    assert (now.totals.turns, now.totals.busy_ns) == (2, 9 * MS)
    assert (now.turn_since_ns, now.callback_since_ns) == (BEGIN, BEGIN + 7)
    flight.put_lane(lane, state=2, closed_ns=BEGIN + 99, turn_epoch=4, epoch=6)
    _write_over(path, bytes(flight))
    assert one(survey).lanes[0].totals.closed_ns == BEGIN + 99
    flight.put_lane(lane, state=1, closed_ns=0, generation=2, turns=0)
    _write_over(path, bytes(flight))
    assert one(survey).lanes[0].totals.generation == 2


def _write_over(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.write(data)


def test_an_exited_process_is_shown_without_its_file(survey: Survey, memory: Path, alive: Hold):
    flight = builder()
    flight.add_lane()
    path = alive(put(flight, memory))
    key = one(survey).key
    flight.put_header(state=ProcessState.ENDED, ended_ns=BEGIN + 9)
    _write_over(path, bytes(flight))
    path.unlink()
    for _ in range(3):
        reading = one(survey)
        assert (reading.key, reading.life, reading.at_ns) == (key, Life.EXITED, BEGIN + 9)


def test_a_taken_in_file_is_shown_for_a_while(survey: Survey, memory: Path):
    path = put(gone(), memory)
    first = one(survey)
    path.unlink()
    assert one(survey) == first


def test_who_gave_up_the_lock_and_has_the_file_no_more_is_dead(survey: Survey, memory: Path):
    put(builder(), memory)  # our parent lives, and has never heard of this file
    assert one(survey).life is Life.KILLED


@pytest.mark.parametrize(
    "damage",
    [b"", b"LCFLIGHT", b"x" * 5_000, bytes(200_000), b"LCFLIGHT" + bytes(5_000), bytes(builder())[:9_000]],
)
def test_damaged_files_are_left_out_and_disturb_no_other(survey: Survey, memory: Path, damage: bytes):
    (memory / f"loopcanary-{os.getuid()}-b.flight").write_bytes(damage)
    put(gone(), memory)
    for _ in range(2):
        assert [reading.session.name for reading in survey.read() if reading.lanes == ()][:1] == ["shop"]


def test_a_file_that_shrinks_is_left_out(survey: Survey, memory: Path, alive: Hold):
    flight = builder()
    flight.add_lane()
    path = alive(put(flight, memory))
    assert len(survey.read()) == 1
    os.truncate(path, 9_000)
    survey.read()
    assert all(reading.lanes == () for reading in survey.read())


def test_links_pipes_and_folders_are_no_files(survey: Survey, memory: Path):
    prefix = f"loopcanary-{os.getuid()}-"
    (memory / f"{prefix}folder.flight").mkdir()
    (memory / f"{prefix}loop.flight").symlink_to(memory / f"{prefix}loop.flight")
    (memory / f"{prefix}none.flight").symlink_to(memory / "nothing")
    os.mkfifo(memory / f"{prefix}pipe.flight")
    assert survey.read() == []


def test_a_store_may_hold_files_and_links_to_them(memory: Path, tmp_path: Path):
    folder = tmp_path / "store" / "flight"
    folder.mkdir(parents=True)
    path = put(gone(), memory)
    (folder / "a.flight").symlink_to(path)
    gone().write(folder / "b.flight")
    with Survey([folder], memory) as survey:
        assert len(survey.read()) == 2


def test_files_are_given_back(memory: Path):
    gc.collect()  # what other tests left would be closed in the middle of this one
    before = len(list(Path("/proc/self/fd").iterdir()))
    with Survey((), memory) as survey:
        for number in range(5):
            put(gone(), memory, f"g{number}")
            put(builder(heartbeat_ns=number), memory, f"r{number}")
        for _ in range(3):
            survey.read()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_nothing_is_written(survey: Survey, memory: Path):
    flight = gone()
    flight.add_stall(going_on())
    path = put(flight, memory)
    path.chmod(0o400)
    survey.read()
    assert path.read_bytes() == bytes(flight)


def test_a_drained_stall_is_whole_or_left_out(memory: Path):
    """The end is the first thing that is wiped when a slot is used again."""
    flight = gone()
    slot = flight.add_stall(stall(), state=SlotState.FREE)
    path = put(flight, memory)
    with FlightFile.open(path) as file:
        assert file.slot_evidence(slot) is None
        evidence = file.slot_evidence(slot, drained=True)
        assert evidence is not None
        assert evidence.names == stall().names
        flight.put_slot(slot, end_ns=0)
        _write_over(path, bytes(flight))
        assert file.slot_evidence(slot, drained=True) is None


def test_a_callbacks_names_end_with_it(memory: Path):
    flight = gone()
    lane = flight.add_lane(epoch=7, begin=BEGIN + MS, turn_epoch=7, turn_begin=BEGIN)
    flight.add_stall(going_on(), lane=lane, epoch=5)
    with FlightFile(bytes(flight)) as file:
        [[reading], _] = file.glances().look()
    assert reading.work is None
    assert reading.in_stall


def test_a_name_that_lies_outside_of_the_heap_is_none():
    flight = gone()
    slot = flight.add_stall(going_on())
    flight.put_slot(slot, callback=struct.pack("<II", 1 << 31, 40), task=struct.pack("<II", 0, 0))
    with FlightFile(bytes(flight)) as file:
        [[reading], _] = file.glances().look()
    assert reading.work is not None
    assert reading.work.callback is None


def test_a_closed_file_is_a_flight_error():
    flight = gone()
    flight.add_lane()
    file = FlightFile(bytes(flight))
    glances = file.glances()
    file.close()
    with pytest.raises(FlightError):
        glances.look()
