"""Files that their process writes while we read: whole, or left out; never a mixture.

The writer's stores are put between the reader's loads, at each place in turn, so that no test waits
for a race to happen.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.building.evidence import BEGIN, MS, going_on, sample, stall
from tests.building.flight_file import FlightBuilder, SlotBuilder

from loopcanary.flight import FlightFile
from loopcanary.flight.format import SectionKind, SlotState
from loopcanary.flight.source import BufferSource
from loopcanary.model import CallbackNames, Collection

OTHER = stall(
    serial=4, names=CallbackNames(name="Shop.other", task="Task-99"), samples=(sample(50),), scene="other"
)


class Interrupted(BufferSource):
    """Lets the writer act once, before load number `when`."""

    def __init__(self, flight: FlightBuilder, when: int, act: Callable[[], None]) -> None:
        super().__init__(flight.data, "a live process")
        self._left = when
        self._act = act

    def read(self, offset: int, size: int) -> bytes:
        if self._left == 0:
            self._act()
        self._left -= 1
        return super().read(offset, size)

    @property
    def acted(self) -> bool:
        return self._left < 0


def interrupted(flight: FlightBuilder, when: int, act: Callable[[], None]) -> tuple[FlightFile, Interrupted]:
    file = FlightFile(flight.data)
    source = Interrupted(flight, when, act)
    file._source = source
    return file, source


def every_moment(make, look):
    """What `look` gives with the writer at work before the first load, the second, ... and never."""
    answers = []
    for when in range(1000):
        flight, act = make()
        file, source = interrupted(flight, when, act)
        answers.append(look(file))
        if not source.acted:
            return answers
    raise AssertionError("the reader loads without end")


def overwrite(flight: FlightBuilder, evidence) -> Callable[[], None]:
    """The slot is drained, and a later stall gets it."""

    def act() -> None:
        at = flight.at(SectionKind.SLOTS)
        flight.data[at : at + 131072] = bytes(131072)
        slot = SlotBuilder(flight.data, at)
        slot.put_evidence(evidence, 9)
        slot.put(state=SlotState.ENDED, lane=0, lane_generation=1, epoch=9, turn_epoch=11)

    return act


def test_a_slot_reused_during_a_read_is_one_stall():
    def make():
        flight = FlightBuilder(slot_room=1)
        flight.add_stall(stall(threads=()))
        return flight, overwrite(flight, OTHER)

    answers = every_moment(make, lambda file: file.slot_evidence(0))

    assert stall(threads=()) in answers
    assert all(answer in (stall(threads=()), OTHER) for answer in answers)


def test_a_slot_freed_during_a_read_is_whole_or_nothing():
    def make():
        flight = FlightBuilder(slot_room=1)
        flight.add_stall(stall())
        return flight, lambda: flight.put_slot(0, state=SlotState.FREE)

    answers = every_moment(make, lambda file: file.slot_evidence(0))

    assert answers[0] is None
    assert all(answer in (stall(), None) for answer in answers)


def test_a_slot_that_changes_all_the_time_is_left_out():
    flight = FlightBuilder(slot_room=1)
    flight.add_stall(stall())
    file = FlightFile(flight.data)
    source = Interrupted(flight, -1, lambda: None)
    plain, loads = source.read, 0

    def restless(offset: int, size: int) -> bytes:
        nonlocal loads
        loads += 1
        flight.put_slot(0, serial=loads)
        return plain(offset, size)

    source.read = restless  # type: ignore[method-assign]
    file._source = source

    assert file.slot_evidence(0) is None
    assert loads < 100


def test_samples_that_arrive_during_a_read_are_whole():
    first, second, third = stall().samples

    def make():
        flight = FlightBuilder(slot_room=1)
        flight.add_stall(going_on(samples=(first,)))

        def act() -> None:
            slot = SlotBuilder.resumed(flight.data, flight.at(SectionKind.SLOTS))
            slot.put_sample(1, second, 5)
            slot.put_sample(2, third, 5)

        return flight, act

    answers = every_moment(make, lambda file: file.slot_evidence(0).samples)

    assert set(answers) == {(first,), (first, second, third)}


def test_a_stall_that_ends_during_a_read_is_consistent():
    def make():
        flight = FlightBuilder(slot_room=1)
        flight.add_stall(going_on())
        ended = {"epoch": 5, "turn_epoch": 7, "begin": BEGIN, "end": BEGIN + 250 * MS}

        def act() -> None:
            flight.add_ended(0, **ended)
            flight.put_lane(0, epoch=6)

        return flight, act

    ends = every_moment(make, lambda file: file.slot_evidence(0).end_ns)

    assert set(ends) == {None, BEGIN + 250 * MS}


def test_facts_that_change_during_a_read_are_whole():
    def make():
        flight = FlightBuilder(facts={"name": "old"})
        return flight, lambda: flight.put_facts(b'{"name": "newer"}')

    answers = every_moment(make, lambda file: file.facts())

    assert all(answer in ({"name": "old"}, {"name": "newer"}) for answer in answers)


def test_an_overwritten_collection_is_whole_or_absent():
    old, new = (Collection(begin_ns=n, end_ns=n + 5, tid=n, generation=0) for n in (100, 900))

    def make():
        flight = FlightBuilder()
        flight.add_collection(old)

        def act() -> None:
            for _ in range(64):
                flight.add_collection(new)

        return flight, act

    answers = every_moment(make, lambda file: file.collections())

    assert {c for answer in answers for c in answer} == {old, new}


def test_a_callback_that_changes_during_a_look_is_not_stuck():
    def make():
        flight = FlightBuilder()
        flight.add_lane(epoch=5, begin=100, turn_epoch=7, turn_begin=50)
        return flight, lambda: flight.put_lane(0, epoch=7, begin=900)

    def look(file):
        [[lane], _] = file.glances().look()
        return lane.callback_since_ns

    assert set(every_moment(make, look)) == {100, None, 900}


def test_a_reused_lane_lends_no_records():
    def make():
        flight = FlightBuilder()
        flight.add_lane(tid=41)
        flight.add_ended(0, epoch=5, turn_epoch=7, begin=BEGIN, end=BEGIN + 250 * MS)
        return flight, lambda: flight.put_lane(0, tid=99, generation=2, opened_ns=BEGIN + 900 * MS)

    answers = every_moment(make, lambda file: [evidence.tid for evidence in file.unslotted_stalls()])

    assert all(answer in ([41], []) for answer in answers)


def moved_down() -> tuple[FlightBuilder, Callable[[], None]]:
    """A stall that goes on in slot 1 moves to slot 0, which was free."""
    flight = FlightBuilder()
    flight.add_stall(OTHER)
    flight.add_stall(going_on(serial=5))
    flight.put_slot(0, state=SlotState.FREE, end_ns=0)

    def act() -> None:
        first, second = (flight.at(SectionKind.SLOTS, index) for index in (0, 1))
        flight.data[first : first + 131072] = flight.data[second : second + 131072]
        flight.put_slot(1, state=SlotState.FREE)

    return flight, act


def test_a_stall_that_moves_is_seen_at_every_moment():
    serials = every_moment(moved_down, lambda file: [evidence.serial for _, evidence in file.stalls()])
    assert set(map(tuple, serials)) == {(5,)}
    marks = every_moment(moved_down, lambda file: [mark.serial for mark in file.glances().marks()])
    assert set(map(tuple, marks)) == {(5,)}
    looks = every_moment(moved_down, lambda file: [stall.serial for stall in file.glances().look()[1]])
    assert set(map(tuple, looks)) == {(5,)}
