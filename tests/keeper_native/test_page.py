"""What a keeper writes into the flight file of a living process, and what follows from it there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.building.flight_file import FlightBuilder

from loopcanary._native import KeeperPage, open_keeper  # type: ignore[attr-defined]
from loopcanary.flight import FlightFile
from loopcanary.flight import format as layout
from loopcanary.flight.format import SectionKind, TakenBy

from .agents import Agent

ONES = (1 << 64) - 1


def words(path: Path) -> dict[str, int]:
    """The keeper's page, field by field."""
    offsets = layout.HEADER.offsets["sections"] + SectionKind.KEEPER * layout.SECTION.size
    data = path.read_bytes()
    return layout.KEEPER.read(data, layout.SECTION.read(data, offsets)["offset"])


def test_a_stored_stall_makes_room_for_the_next(begin: Callable[..., Agent]) -> None:
    agent = begin()
    keeper = open_keeper(str(agent.path))
    agent.do("stall()")
    taken = dict(agent.stalls())  # two, where the rest of the turn had to wait for a core
    for slot, evidence in taken.items():
        keeper.take(slot, evidence.serial)
    assert agent.stalls() == []

    agent.do("stall()")
    (slot, second), *_ = agent.stalls()
    assert second.serial > taken[slot].serial


def test_what_is_not_stored_stays(begin: Callable[..., Agent]) -> None:
    agent = begin()
    keeper = open_keeper(str(agent.path))
    agent.do("stall()")
    (slot, first), *_ = before = agent.stalls()
    for serial in (0, first.serial - 1, first.serial + 100, ONES):
        keeper.take(slot, serial)
    agent.do("stall()")

    after = agent.stalls()
    assert after[: len(before)] == before
    assert after[-1][0] not in dict(before)


def test_more_stalls_than_slots_all_taken(begin: Callable[..., Agent]) -> None:
    agent = begin()
    keeper = open_keeper(str(agent.path))
    for _ in range(2 * layout.SLOT_COUNT):
        agent.do("stall()")
        for slot, evidence in agent.stalls():  # two, where the rest of the turn had to wait for a core
            keeper.take(slot, evidence.serial)
    with FlightFile.open(agent.path) as file:
        counters = file.counters()
    assert counters["stalls_recorded"] >= 2 * layout.SLOT_COUNT
    assert counters["stalls_dropped_no_slot"] == 0


def test_its_words_are_in_the_file(begin: Callable[..., Agent]) -> None:
    agent = begin()
    keeper = open_keeper(str(agent.path))
    keeper.beat(77)
    assert keeper.say(b"hello\n") is True
    assert keeper.say(b"again\n") is False
    keeper.set_closed()

    found = words(agent.path)
    assert (found["pid"], found["beat_ns"], found["closed"]) == (os.getpid(), 77, 1)
    assert (found["text_number"], found["text_bytes"], found["text"][:6]) == (1, 6, b"hello\n")
    with FlightFile.open(agent.path) as file:
        assert file.header.taken_by is TakenBy.KEEPER


def test_a_text_that_is_too_long_is_not_put(begin: Callable[..., Agent]) -> None:
    agent = begin()
    keeper = open_keeper(str(agent.path))

    assert keeper.say(bytes(layout.KEEPER_TEXT_BYTES + 1)) is False
    assert words(agent.path)["text_number"] == 0


def test_a_closed_page_says_so(begin: Callable[..., Agent]) -> None:
    keeper = open_keeper(str(begin().path))
    keeper.close()
    keeper.close()
    for call in (
        lambda: keeper.take(0, 1),
        lambda: keeper.beat(1),
        lambda: keeper.say(b""),
        keeper.set_closed,
    ):
        with pytest.raises(ValueError, match="closed"):
            call()


@pytest.mark.parametrize("slot", [layout.SLOT_COUNT, 1 << 40, ONES])
def test_a_slot_that_is_none(begin: Callable[..., Agent], slot: int) -> None:
    keeper = open_keeper(str(begin().path))
    with pytest.raises(ValueError, match="of 16"):
        keeper.take(slot, 1)


def test_a_page_is_only_got_by_opening() -> None:
    with pytest.raises(TypeError):
        KeeperPage()


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        open_keeper(str(tmp_path / "none"))
    assert caught.value.filename == str(tmp_path / "none")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: b"no flight file at all".ljust(8192), "not a flight file"),
        (lambda: FlightBuilder().as_version_1(), "another version"),
        (lambda: bytes(FlightBuilder(version=3)), "another version"),
        (lambda: bytes(FlightBuilder())[: -layout.KEEPER_BYTES], "no keeper's page"),
        (lambda: b"", "too short"),
    ],
    ids=["text", "older", "newer", "cut", "empty"],
)
def test_what_is_no_flight_file_of_this_version(tmp_path: Path, make: Callable[[], bytes], why: str) -> None:
    path = tmp_path / "other"
    path.write_bytes(make())
    with pytest.raises(ValueError, match=why):
        open_keeper(str(path))


def test_a_file_that_is_cut_short_meanwhile_is_an_error(tmp_path: Path) -> None:
    path = FlightBuilder().write(tmp_path / "41.flight")
    keeper = open_keeper(str(path))
    os.truncate(path, 0)

    with pytest.raises(OSError, match="No data"):
        keeper.say(b"text\n")
    keeper.set_closed()  # its bytes are written: the process's file, whatever it is now
    os.truncate(path, 0)
    keeper.close()
