"""Stalls that a keeper has stored are no news to a reader; and files of version 1, which knew no keeper."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.building.evidence import going_on, stall
from tests.building.flight_file import FlightBuilder

from loopcanary.flight import FlightFile
from loopcanary.flight.format import SectionKind, SlotState, TakenBy

ENDED, GOES_ON = stall(serial=4), going_on(serial=5)


def flight(taken_by: TakenBy = TakenBy.KEEPER, **taken: int) -> FlightFile:
    builder = FlightBuilder(takes=taken_by)
    builder.add_stall(ENDED)
    builder.add_stall(GOES_ON)
    builder.put_keeper(taken={0: taken.get("first", 0), 1: taken.get("second", 0)})
    return FlightFile(bytes(builder))


def test_a_stored_stall_is_not_given_again():
    file = flight(first=4)

    assert file.stalls() == [(1, GOES_ON)]
    assert file.slot_evidence(0) is None
    assert file.slot_evidence(0, drained=True) == ENDED


@pytest.mark.parametrize("serial", [0, 3, 5, (1 << 64) - 1])
def test_another_serial_takes_nothing(serial):
    assert flight(first=serial).stalls() == [(0, ENDED), (1, GOES_ON)]


def test_what_goes_on_is_given_whatever_was_taken():
    assert flight(second=5).stalls() == [(0, ENDED), (1, GOES_ON)]


@pytest.mark.parametrize("taken_by", [TakenBy.DRAIN, 4, (1 << 64) - 1])
def test_what_a_keeper_took_before_the_program_judges_stays_taken(taken_by):
    file = flight(taken_by, first=4)

    assert file.header.taken_by is TakenBy.DRAIN
    assert file.stalls() == [(1, GOES_ON)]


def test_slots_beyond_those_of_the_page_are_not_taken():
    builder = FlightBuilder(takes=TakenBy.KEEPER, slot_room=17)
    for serial in range(1, 18):
        builder.add_stall(stall(serial=serial))
    builder.put_keeper(taken={slot: slot + 1 for slot in range(17)})
    assert [slot for slot, _ in FlightFile(bytes(builder)).stalls()] == [16]


def test_a_file_of_version_1_is_read():
    builder = FlightBuilder(facts={"name": "shop"}, takes=TakenBy.KEEPER, text_written=3)
    builder.add_stall(ENDED)
    builder.put_keeper(taken={0: 4})
    old = FlightFile(builder.as_version_1())

    assert (old.header.version, old.header.taken_by) == (1, TakenBy.DRAIN)
    assert (old.facts(), old.stalls()) == ({"name": "shop"}, [(0, ENDED)])


def test_a_page_that_is_not_there_takes_nothing():
    builder = FlightBuilder(takes=TakenBy.KEEPER)
    builder.add_stall(ENDED)
    builder.put_keeper(taken={0: 4})
    cut = bytes(builder)[: builder.at(SectionKind.KEEPER) + 64]

    assert FlightFile(cut).stalls() == [(0, ENDED)]


def test_a_slot_that_is_used_again_is_a_new_stall():
    builder = FlightBuilder(takes=TakenBy.KEEPER)
    builder.add_stall(ENDED)
    builder.put_keeper(taken={0: 4})
    builder.put_slot(0, serial=9, state=SlotState.ENDED)

    assert [evidence.serial for _, evidence in FlightFile(bytes(builder)).stalls()] == [9]


@pytest.mark.parametrize("place", [0, 1])
def test_a_stall_that_was_just_moved_to_another_slot_is_one(place):
    """Killed between the two stores; or a copy on disk, in which both places are."""
    later = replace(GOES_ON, last_look_ns=GOES_ON.last_look_ns + 1)
    builder = FlightBuilder()
    for evidence in (GOES_ON, later) if place else (later, GOES_ON):
        builder.add_stall(evidence)

    assert FlightFile(bytes(builder)).stalls() == [(place, later)]
