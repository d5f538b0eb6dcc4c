"""The seat of a store's keeper: its lock, its bell, its status."""

from __future__ import annotations

import os
import select
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from loopcanary import keeper as place
from loopcanary.keeper.seat import Seat, statuses


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store")


@pytest.fixture
def seat(store: str) -> Iterator[Seat]:
    made = Seat(store)
    assert made.take()
    yield made
    made.give_back()


def ring(store: str) -> None:
    """As a program does."""
    bell = os.open(place.bell_path(store), os.O_WRONLY | os.O_NONBLOCK)
    os.write(bell, b"!")
    os.close(bell)


def is_rung(seat: Seat) -> bool:
    assert seat.bell is not None
    return bool(select.select([seat.bell], [], [], 0)[0])


def test_one_keeper_has_the_seat(store: str, seat: Seat):
    other = Seat(store)
    assert not other.take()
    seat.give_back()
    assert other.take()
    other.give_back()


def test_a_bell_is_heard_once(store: str, seat: Seat):
    assert not is_rung(seat)
    for _ in range(3):
        ring(store)
    assert is_rung(seat)
    seat.hear()
    assert not is_rung(seat)


def test_a_bell_that_was_rung_for_hours_is_heard_once(store: str, seat: Seat):
    bell = os.open(place.bell_path(store), os.O_WRONLY | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while os.write(bell, b"!" * 1_000):
            pass
    os.close(bell)
    seat.hear()
    assert not is_rung(seat)


def test_without_a_keeper_a_bell_cannot_be_rung(store: str, seat: Seat):
    seat.give_back()
    with pytest.raises(OSError, match="No such device or address"):
        ring(store)


def test_a_keeper_that_is_gone_says_nothing(store: str, seat: Seat):
    seat.write_status({"pid": 7})
    assert statuses(store) == [{"pid": 7}]
    seat.give_back()
    assert statuses(store) == []


def test_a_damaged_status_is_none(store: str, seat: Seat):
    Path(place.path(store, place.STATUS)).write_text('["')
    assert statuses(store) == [{}]


def test_a_folder_that_cannot_be_read_has_no_keeper(store: str):
    too_long = "x" * 5_000  # root may read what other users may not
    assert statuses(f"{store}/{too_long}") == []


def test_a_keeper_whose_folder_is_gone_knows_it(store: str, seat: Seat):
    assert seat.is_there()
    shutil.rmtree(store)
    assert not seat.is_there()
    another = Seat(store)
    assert another.take()
    assert not seat.is_there()
    another.give_back()


def test_a_file_in_the_place_of_the_bell_is_refused(store: str):
    place.prepare(store)
    bell = Path(place.bell_path(store))
    bell.touch()
    seat = Seat(store)
    with pytest.raises(OSError, match="not the keeper's"):
        seat.take()
    bell.unlink()
    bell.symlink_to("/dev/null")
    with pytest.raises(OSError, match="symbolic links"):
        seat.take()
    bell.unlink()
    assert seat.take()  # it did not keep the lock
    seat.give_back()
